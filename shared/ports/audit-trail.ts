/** One act of a person on the cluster, done or refused. No bodies: they may hold what is nobody's business. */
export interface AuditLine {
  /** RFC 3339, server time. */
  readonly time: string;
  readonly user: string;
  readonly groups: readonly string[];
  /** What the sign-in tells besides, such as the IAM ARN. */
  readonly extra?: Readonly<Record<string, readonly string[]>>;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly dryRun?: boolean;
  readonly sourceIp: string;
  readonly userAgent: string;
  /** HTTP status of the answer. */
  readonly code: number;
}

/** Where acts are kept. @throws when it could not be kept */
export interface AuditTrail {
  record(line: AuditLine): Promise<void>;
}
