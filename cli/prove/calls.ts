/** How a run asks AWS and its cluster. The tests put other answers in between. */

export type AwsJson = Readonly<Record<string, unknown>>;

export interface JsonAnswer {
  readonly status: number;
  readonly body: AwsJson;
}

export interface XmlAnswer {
  readonly status: number;
  readonly text: string;
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** A path of the cluster, or a URL. */
  readonly url: string;
  /** Without the token of the run. */
  readonly isAnonymous?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** From the request to the end of the body. Milliseconds. */
  readonly durationMs: number;
}

export interface HttpStream extends Pick<HttpAnswer, 'status' | 'headers'> {
  /** The time of the first text that contains this. Epoch milliseconds. Rejects after `withinMs`. */
  arrival(text: string, withinMs: number): Promise<number>;
  /** Ends the connection without a word. */
  abandon(): void;
}

export interface Calls {
  /** Base URL of the cluster. */
  readonly endpoint: string;
  /** An action of the services with JSON protocol, without retries. */
  json(service: 'dynamodb' | 'sqs' | 'logs', action: string, input: AwsJson): Promise<JsonAnswer>;
  /** An action of EC2. Parameters as in its API reference. */
  ec2(action: string, parameters: Readonly<Record<string, string>>): Promise<XmlAnswer>;
  /** Reserves concurrent executions for a function; undefined: as before. @returns the error, if it was refused */
  reserve(functionName: string, executions: number | undefined): Promise<string | undefined>;
  /** Runs a function, without its answer. @returns the error, if it was refused */
  invoke(functionName: string): Promise<string | undefined>;
  http(request: HttpRequest): Promise<HttpAnswer>;
  /** The answer's head, and its body as it arrives. Redirects are followed. */
  stream(request: HttpRequest): Promise<HttpStream>;
  nowMs(): number;
  /** Rejects when the run is interrupted. */
  pause(milliseconds: number): Promise<void>;
}

/** A function of the probe stack. */
export interface ProbeFunction {
  readonly functionName: string;
  readonly logGroup: string;
}

/** What was deployed for the run. */
export interface ProvedCluster {
  readonly tables: { readonly health: string; readonly objects: string; readonly control: string };
  readonly functions: { readonly api: string; readonly watch: string };
  /** URL of the queue of the probe stack. */
  readonly queueUrl: string;
  /** By their log level. */
  readonly probes: { readonly info: ProbeFunction; readonly warn: ProbeFunction };
}

export interface Measuring {
  readonly calls: Calls;
  readonly cluster: ProvedCluster;
  /** In the keys of what is written. */
  readonly suffix: string;
  /** How long ticks, schedules and delays are observed. Seconds. */
  readonly windowSeconds: number;
}
