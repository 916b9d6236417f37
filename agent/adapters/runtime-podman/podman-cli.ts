import { spawn } from 'node:child_process';
import { PassThrough, type Readable } from 'node:stream';
import { recordsOf } from '../../../shared/kube/normal-form.ts';

const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;
/** Length of the error output in an error; the last characters are kept. */
const ERROR_LENGTH_MAX = 2_000;

/** Calls of the podman program: each is a child process with a time limit. */
export class PodmanCli {
  readonly #program: string;

  constructor(program: string) {
    this.#program = program;
  }

  /**
   * Standard output of one call.
   *
   * @throws Error with podman's error output when the call fails or exceeds the time limit
   */
  run(args: readonly string[], timeoutMs: number, input = ''): Promise<string> {
    return new Promise((resolve, reject) => {
      const child = spawn(this.#program, args, { timeout: timeoutMs, killSignal: 'SIGKILL' });
      let output = '';
      let errorOutput = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        output += text;
        if (output.length > OUTPUT_BYTES_MAX) child.kill('SIGKILL');
      });
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        errorOutput = (errorOutput + text).slice(-ERROR_LENGTH_MAX);
      });
      child.stdin.on('error', () => {
        // It exited before it read all of its input. Its exit code says why.
      });
      child.once('error', (cause) => reject(new Error(`${this.#program}: ${cause.message}`, { cause })));
      child.once('close', (code, signal) => {
        if (code === 0) resolve(output);
        else {
          const command = `${this.#program} ${args[0]} ${args[1] ?? ''}`;
          reject(new Error(`${command}: ${errorOutput.trim() || (signal ?? code)}`));
        }
      });
      child.stdin.end(input);
    });
  }

  /**
   * Standard output and error output of one call, as they are written. The call is killed when `stop` is aborted, and
   * when the caller reads no more.
   *
   * @throws Error of the call that cannot be started
   */
  async *stream(args: readonly string[], stop: AbortSignal): AsyncGenerator<Uint8Array> {
    const child = spawn(this.#program, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, TZ: 'UTC' } });
    const failed = new Promise<never>((_, reject) => {
      child.once('error', (cause) => reject(new Error(`${this.#program}: ${cause.message}`, { cause })));
    });
    const kill = (): void => void child.kill('SIGKILL');
    stop.addEventListener('abort', kill, { once: true });
    try {
      yield* merged([child.stdout, child.stderr], failed);
    } finally {
      stop.removeEventListener('abort', kill);
      kill();
    }
  }

  /** The objects that one call prints as a JSON list. */
  async json(args: readonly string[], timeoutMs: number): Promise<Record<string, unknown>[]> {
    const text = await this.run(args, timeoutMs);
    return recordsOf(text.trim() === '' ? [] : JSON.parse(text));
  }
}

/** The pieces of several streams in the order in which they arrive. */
async function* merged(streams: readonly Readable[], failed: Promise<never>): AsyncGenerator<Uint8Array> {
  const output = new PassThrough();
  let open = streams.length;
  for (const stream of streams) {
    stream.pipe(output, { end: false });
    stream.once('close', () => {
      open -= 1;
      if (open === 0) output.end();
    });
  }
  failed.catch((cause: Error) => output.destroy(cause));
  yield* output as AsyncIterable<Buffer>;
}
