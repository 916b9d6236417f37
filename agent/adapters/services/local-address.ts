/**
 * An address of this machine on its loopback interface, by the program ip(8). Pods with addresses of their own reach it
 * through their gateway, which is this machine.
 */
import { runProgram } from '../system/run-program.ts';

const BOUNDS = { timeoutMs: 10_000, outputBytesMax: 64 * 1024 };

const change = async (verb: 'replace' | 'delete', address: string): Promise<void> => {
  const prefix = address.includes(':') ? 128 : 32;
  await runProgram('ip', ['address', verb, `${address}/${prefix}`, 'dev', 'lo'], BOUNDS);
};

/** @throws Error of the program */
export const addLocalAddress = (address: string): Promise<void> => change('replace', address);

/** Does nothing if the machine does not have it. */
export const removeLocalAddress = (address: string): Promise<void> => change('delete', address).catch(() => undefined);
