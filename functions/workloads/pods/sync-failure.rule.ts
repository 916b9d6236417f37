/** What the creations or deletions of a sync ended with. */
export interface SyncFailure {
  readonly reason: 'FailedCreate' | 'FailedDelete';
  readonly message: string;
}
