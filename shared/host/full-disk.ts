/** Faults of a disk that accepts no more data; by code, as the system and SQLite report them. */

const SYSTEM_CODES = new Set(['ENOSPC', 'EDQUOT', 'EROFS']);
/** SQLITE_FULL and SQLITE_READONLY. Source: SQLite, "Result and Error Codes". */
const SQLITE_CODES = new Set([13, 8]);

export const isFullDisk = (error: unknown): error is Error =>
  error instanceof Error &&
  (SYSTEM_CODES.has(String((error as NodeJS.ErrnoException).code)) ||
    SQLITE_CODES.has(Number((error as { errcode?: unknown }).errcode)));
