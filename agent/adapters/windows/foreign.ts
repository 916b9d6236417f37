/**
 * Functions of Windows' own libraries, through the native part of koffi. It is loaded on Windows alone: beside the
 * bundle, or from node_modules.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** An address, or a handle. */
export type Pointer = bigint;

export interface ForeignLibrary {
  /** A function by its declaration in C. `async` of it runs on another thread. */
  func<Call extends (...args: never[]) => unknown>(declaration: string): Call & ForeignFunction<Call>;
}

export interface ForeignFunction<Call extends (...args: never[]) => unknown> {
  readonly async: (...args: [...Parameters<Call>, (error: Error | null, result: ReturnType<Call>) => void]) => void;
}

/** The part of koffi that the agent uses. */
export interface Foreign {
  load(library: string): ForeignLibrary;
  struct(name: string, members: Readonly<Record<string, unknown>>): unknown;
  proto(declaration: string): unknown;
  pointer(type: unknown): unknown;
  register(callback: (...args: never[]) => unknown, type: unknown): Pointer;
  decode(value: unknown, type: string): unknown;
  decode(value: unknown, offset: number, type: string): unknown;
  address(value: unknown): Pointer;
}

/** A call of Windows failed. */
export class WindowsError extends Error {
  override readonly name = 'WindowsError';
  readonly code: number;

  constructor(call: string, code: number) {
    super(`${call}: ${MEANINGS[code] ?? `error ${code} of Windows`}`);
    this.code = code;
  }
}

export const ACCESS_DENIED = 5;
export const FILE_NOT_FOUND = 2;
export const SERVICE_UNKNOWN = 1060;

/** Codes of winerror.h. */
const MEANINGS: Readonly<Record<number, string>> = {
  [FILE_NOT_FOUND]: 'not found (2)',
  [ACCESS_DENIED]: 'access is denied (5)',
  183: 'exists already (183)',
  1053: 'the service did not answer in time (1053)',
  1056: 'the service already runs (1056)',
  [SERVICE_UNKNOWN]: 'the service does not exist (1060)',
  1067: 'the process terminated (1067)',
  1068: 'a service that it depends on does not start (1068)',
  1072: 'the service is marked for deletion (1072)',
  1073: 'the service exists already (1073)',
  1075: 'a service that it depends on does not exist (1075)',
};

/** The directory of the installed program files: an update of the agent is one file elsewhere. */
export const programDirectory = (): string =>
  process.env['NODEKEEPER_PROGRAM'] ?? dirname(fileURLToPath(import.meta.url));

let loaded: Foreign | undefined;

/** @throws Error when there is no native part for this machine */
export function foreign(): Foreign {
  if (loaded === undefined) {
    const beside = join(programDirectory(), 'koffi.node');
    const require = createRequire(import.meta.url);
    loaded = require(existsSync(beside) ? beside : '@koromix/koffi-win32-x64') as Foreign;
  }
  return loaded;
}

const lastError = (): number => windowsLibraries().lastError();

/** CreateFileW returns it in place of 0. */
const INVALID_HANDLE = 0xffff_ffff_ffff_ffffn;

/** @throws WindowsError when the result of a call is 0, false or no handle */
export function required<Result>(call: string, result: Result | null): Result {
  if (result === null || result === false || result === 0n || result === INVALID_HANDLE) {
    throw new WindowsError(call, lastError());
  }
  return result;
}

export interface WindowsLibraries {
  readonly kernel32: ForeignLibrary;
  readonly advapi32: ForeignLibrary;
  readonly lastError: () => number;
}

let libraries: WindowsLibraries | undefined;

export function windowsLibraries(): WindowsLibraries {
  if (libraries === undefined) {
    const kernel32 = foreign().load('kernel32.dll');
    libraries = {
      kernel32,
      advapi32: foreign().load('advapi32.dll'),
      lastError: kernel32.func<() => number>('uint32 __stdcall GetLastError()'),
    };
  }
  return libraries;
}

/** The text as Windows stores it: UTF-16, with a null. */
export const wide = (text: string): Buffer => Buffer.from(`${text}\0`, 'utf16le');
