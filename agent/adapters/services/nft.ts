/** nftables by the program nft(8): one run per transaction, with bounds on its time and its output. */
import { type ExecFileException, execFile } from 'node:child_process';
import { type PacketFilter, PacketFilterError } from '../../ports/packet-filter.ts';

/** Measured for 500 Services with 20 endpoints each: one second. */
const TIMEOUT_MS = 30_000;
const OUTPUT_BYTES_MAX = 64 * 1024;
/** Errors repeat the transaction. */
const MESSAGE_LENGTH_MAX = 500;
/** Of a shell that does not find the program. */
const EXIT_NOT_FOUND = 127;
/** nft opens /dev/stdin, which cannot be a socket as the input of a child of Node.js. */
const THROUGH_A_PIPE = ['-c', 'cat | "$@"', 'sh'];

/** @param command the program, and arguments before ours: nft of another network namespace, for tests */
export function nftPacketFilter(command: readonly string[] = ['nft']): PacketFilter {
  return {
    apply: (commands) =>
      new Promise((resolve, reject) => {
        const options = { timeout: TIMEOUT_MS, killSignal: 'SIGKILL', maxBuffer: OUTPUT_BYTES_MAX } as const;
        const args = [...THROUGH_A_PIPE, ...command, '-j', '-f', '-'];
        const child = execFile('/bin/sh', args, options, (cause, _output, errors) => {
          if (cause === null) resolve();
          else reject(new PacketFilterError(messageOf(cause, errors), { cause }));
        });
        // The program may end before it has read everything; its exit says why.
        child.stdin?.once('error', () => undefined);
        child.stdin?.end(JSON.stringify({ nftables: commands }));
      }),
  };
}

function messageOf({ code, killed, message }: ExecFileException, errors: string): string {
  if (code === EXIT_NOT_FOUND) return 'the program nft is not installed';
  if (killed === true) return `nft did not end within ${TIMEOUT_MS / 1_000} s`;
  return `nft: ${(errors.trim() || message).slice(0, MESSAGE_LENGTH_MAX)}`;
}
