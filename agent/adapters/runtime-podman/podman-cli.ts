import { spawn } from 'node:child_process';
import { recordsOf } from '../../../shared/kubernetes/normal-form.ts';

const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;
/** Length of the error output in an error; the last characters are kept. */
const ERROR_LENGTH_MAX = 2_000;

export interface PodmanCall {
  readonly timeoutMs: number;
  /** Kills the call. */
  readonly stop?: AbortSignal;
  /** Variables besides those of the agent. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A call of podman failed. The message is its error output. */
export class PodmanError extends Error {
  override readonly name = 'PodmanError';
  /** Undefined if it did not exit by itself. */
  readonly exitCode: number | undefined;

  constructor(message: string, exitCode: number | undefined, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** Calls of the podman program: each is a child process with a time limit. */
export class PodmanCli {
  readonly program: string;

  constructor(program: string) {
    this.program = program;
  }

  /** Standard output of one call. @throws PodmanError */
  run(args: readonly string[], { timeoutMs, stop, env }: PodmanCall): Promise<string> {
    return new Promise((resolve, reject) => {
      const child = spawn(this.program, args, {
        timeout: timeoutMs,
        killSignal: 'SIGKILL',
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, ...env },
      });
      const kill = (): void => void child.kill('SIGKILL');
      stop?.addEventListener('abort', kill, { once: true });
      if (stop?.aborted) kill();
      let output = '';
      let errorOutput = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        output += text;
        if (output.length > OUTPUT_BYTES_MAX) kill();
      });
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        errorOutput = (errorOutput + text).slice(-ERROR_LENGTH_MAX);
      });
      child.once('error', (cause) =>
        reject(new PodmanError(`${this.program}: ${cause.message}`, undefined, { cause })),
      );
      child.once('close', (code, signal) => {
        stop?.removeEventListener('abort', kill);
        if (code === 0) resolve(output);
        else {
          const command = `${this.program} ${args[0]} ${args[1] ?? ''}`;
          reject(new PodmanError(`${command}: ${errorOutput.trim() || (signal ?? code)}`, code ?? undefined));
        }
      });
    });
  }

  /** The objects that one call prints as a JSON list. @throws PodmanError */
  async json(args: readonly string[], call: PodmanCall): Promise<Record<string, unknown>[]> {
    const text = await this.run(args, call);
    return recordsOf(text.trim() === '' ? [] : JSON.parse(text));
  }
}
