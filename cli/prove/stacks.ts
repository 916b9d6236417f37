/** What a run creates and removes in an account. The journal is written by the caller, before each call. */

export interface DescribedStack {
  /** Such as CREATE_COMPLETE. */
  readonly status: string;
  readonly statusReason: string | undefined;
  readonly outputs: ReadonlyMap<string, string>;
}

export interface StackResource {
  readonly logicalId: string;
  /** Such as AWS::Lambda::Function. */
  readonly type: string;
  /** Name or ARN. Absent while it is created. */
  readonly physicalId: string | undefined;
}

export interface ClusterStack {
  readonly name: string;
  /** Settings of the CDK app (docs/operations/deploy.md). */
  readonly settings: Readonly<Record<string, string>>;
  /** Parameters of the template. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** @throws CommandError from every method, with the error of AWS and what to do next */
export interface Stacks {
  /** undefined: there is none of that name. */
  describe(name: string): Promise<DescribedStack | undefined>;
  resources(name: string): Promise<readonly StackResource[]>;
  /**
   * Deploys the template of this project, and settles when that ended.
   *
   * @param onStart with the id of the process that deploys, before it can have requested anything
   */
  deployCluster(stack: ClusterStack, signal: AbortSignal, onStart: (pid: number) => void): Promise<void>;
  /** Requests a stack from a template. */
  create(name: string, template: object): Promise<void>;
  /** Requests its removal. */
  delete(name: string): Promise<void>;
  /** False: there is none. */
  deleteLogGroup(name: string): Promise<boolean>;
  /** Names of log groups, at most a page. */
  logGroups(prefix: string): Promise<readonly string[]>;
  /** Whether a process of this machine lives. */
  isRunning(pid: number): boolean;
}
