/** One request of a user that changes the cluster, allowed or refused. Without bodies, which may contain secrets. */
export interface AuditLine {
  /** RFC 3339, server time. */
  readonly time: string;
  readonly user: string;
  readonly groups: readonly string[];
  /** More data from the authentication, such as the IAM ARN. */
  readonly extra?: Readonly<Record<string, readonly string[]>>;
  /** The user that the request acted as, if not the one that authenticated. */
  readonly impersonatedUser?: { readonly username: string; readonly groups: readonly string[] };
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly dryRun?: boolean;
  readonly sourceIp: string;
  readonly userAgent: string;
  /** HTTP status of the response. */
  readonly code: number;
}

/** Stores audit records. @throws if a record could not be stored */
export interface AuditTrail {
  record(line: AuditLine): Promise<void>;
}
