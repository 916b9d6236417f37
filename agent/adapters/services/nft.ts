/** nftables by the program nft(8): one run per transaction, with bounds on its time and its output. */
import { type PacketFilter, PacketFilterError } from '../../ports/packet-filter.ts';
import { type ProgramError, runProgram } from '../system/run-program.ts';

/** Measured for 500 Services with 20 endpoints each: one second. */
const BOUNDS = { timeoutMs: 30_000, outputBytesMax: 64 * 1024 };
/** Errors repeat the transaction. */
const MESSAGE_LENGTH_MAX = 500;
/** Of a shell that does not find the program. */
const EXIT_NOT_FOUND = 127;
/** nft opens /dev/stdin, which cannot be a socket as the input of a child of Node.js. */
const THROUGH_A_PIPE = ['-c', 'cat | "$@"', 'sh'];

/** @param command the program, and arguments before ours: nft of another network namespace, for tests */
export function nftPacketFilter(command: readonly string[] = ['nft']): PacketFilter {
  return {
    async apply(commands) {
      const args = [...THROUGH_A_PIPE, ...command, '-j', '-f', '-'];
      try {
        await runProgram('/bin/sh', args, BOUNDS, JSON.stringify({ nftables: commands }));
      } catch (cause) {
        throw new PacketFilterError(messageOf(cause as ProgramError), { cause });
      }
    },
  };
}

const messageOf = ({ code, message }: ProgramError): string =>
  code === EXIT_NOT_FOUND ? 'the program nft is not installed' : `nft: ${message.slice(0, MESSAGE_LENGTH_MAX)}`;
