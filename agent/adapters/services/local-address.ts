/**
 * An address of this machine on its loopback interface, by the program ip(8). Pods with addresses of their own reach it
 * through their gateway, which is this machine.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const TIMEOUT_MS = 10_000;
const run = promisify(execFile);

const change = async (verb: 'replace' | 'delete', address: string): Promise<void> => {
  const prefix = address.includes(':') ? 128 : 32;
  await run('ip', ['address', verb, `${address}/${prefix}`, 'dev', 'lo'], { timeout: TIMEOUT_MS });
};

/** @throws Error of the program */
export const addLocalAddress = (address: string): Promise<void> => change('replace', address);

/** Does nothing if the machine does not have it. */
export const removeLocalAddress = (address: string): Promise<void> => change('delete', address).catch(() => undefined);
