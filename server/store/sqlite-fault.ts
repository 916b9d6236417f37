/** Errors of SQLite as faults of the store, by result code (https://www.sqlite.org/rescode.html). */
import { StoreFault } from '../../shared/store/item-store.ts';
import { EncodingError } from './item-encoding.ts';

const CORRUPT = 11;
const NOT_A_DATABASE = 26;

/** The primary result code; undefined for an error that is not SQLite's. */
export function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return undefined;
  return error.errcode & 0xff;
}

export const isDamage = (error: unknown): boolean => [CORRUPT, NOT_A_DATABASE].includes(resultCode(error) ?? -1);

/**
 * A full disk, a read-only file system and a failing disk are faults of this machine that pass: reads go on, and the
 * same request succeeds once there is room. A damaged file does not pass. Other errors stay what they are.
 */
export function storeFaultOf(error: unknown): Error {
  const isDamaged = isDamage(error) || error instanceof EncodingError;
  if (!isDamaged && resultCode(error) === undefined && !isSystemError(error)) return error as Error;
  const { message } = error as Error;
  return new StoreFault('unreachable', `the database file: ${message}`, { retryable: !isDamaged, cause: error });
}

const isSystemError = (error: unknown): boolean => error instanceof Error && 'syscall' in error;
