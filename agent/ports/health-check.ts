/** One check of /healthz. */
export interface HealthCheck {
  readonly name: string;
  /** What is wrong; undefined while all is well. */
  readonly complaint: () => string | undefined;
}
