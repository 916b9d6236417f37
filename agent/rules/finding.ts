/** A line of `nodekeeper-agent doctor`. */
export interface Finding {
  readonly check: string;
  readonly outcome: 'ok' | 'warning' | 'failed';
  readonly message: string;
  /** What to do. Absent: nothing. */
  readonly todo?: string;
}

export const ok = (check: string, message: string): Finding => ({ check, outcome: 'ok', message });
export const warning = (check: string, message: string, todo: string): Finding => ({
  check,
  outcome: 'warning',
  message,
  todo,
});
export const failed = (check: string, message: string, todo: string): Finding => ({
  check,
  outcome: 'failed',
  message,
  todo,
});

/** Whether a connection failed because of the certificate of the server. `code` as Node names it. */
export const isCertificateFault = (code: string): boolean => code.includes('CERT') || code.includes('SIGNATURE');
