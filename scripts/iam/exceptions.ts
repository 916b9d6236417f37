/** Grants that a recorded run need not use, each with the reason. */
export interface Exception {
  readonly functions: readonly string[];
  readonly actions: readonly string[];
  /** Part of the ARN; `*` and `?` as in policies. */
  readonly resource: string;
  /** Of the partitions named by the grant; all of them when absent. */
  readonly partitions?: readonly string[];
  readonly reason: string;
}

export const exceptions: readonly Exception[] = [];
