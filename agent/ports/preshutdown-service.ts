/** The agent as a service of Windows, as far as a shutdown of the machine concerns it. Calls throw its errors. */
export interface PreshutdownService {
  readonly name: string;
  /** Time that Windows waits for this service. Milliseconds. */
  preshutdownTimeoutMs(): number;
  /** Windows may store another value: read it again. */
  setPreshutdownTimeout(timeoutMs: number): void;
  /** Names of the services that this one depends on. */
  dependencies(): readonly string[];
  /** The order in which Windows announces a shutdown to services. */
  readOrder(): readonly string[];
  writeOrder(order: readonly string[]): void;
  /** The longest preshutdown from now on: Windows is kept informed meanwhile. Milliseconds. */
  allowPreshutdown(limitMs: number): void;
  /** Resolves when the machine shuts down. Windows then waits for `end`. */
  readonly preshutdown: Promise<void>;
  /** Reports that the service has stopped. */
  end(exitCode: number): Promise<void>;
}
