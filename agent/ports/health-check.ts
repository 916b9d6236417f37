/** What is asked whether the agent is well, for /healthz. */
export interface HealthCheck {
  readonly name: string;
  /** What is wrong; undefined while all is well. */
  readonly complaint: () => string | undefined;
}
