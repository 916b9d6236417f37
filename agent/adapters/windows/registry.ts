/** Values below HKEY_LOCAL_MACHINE of the registry. */
import { FILE_NOT_FOUND, type Pointer, WindowsError, wide, windowsLibraries } from './foreign.ts';

const LOCAL_MACHINE = 0xffff_ffff_8000_0002n;
const KEY_READ = 0x20019;
const KEY_WRITE = 0x20006;
const TYPE_TEXT = 1;
const TYPE_NUMBER = 4;
const TYPE_TEXTS = 7;
const MORE_DATA = 234;
const VALUE_BYTES = 65_536;

/** A value exists, and is of another type. */
export class RegistryTypeError extends Error {
  override readonly name = 'RegistryTypeError';
}

interface RegistryCalls {
  readonly open: (root: Pointer, path: Buffer, options: number, access: number, key: Buffer) => number;
  readonly query: (key: Pointer, name: Buffer, _: null, type: Buffer, bytes: Buffer, size: Buffer) => number;
  readonly set: (key: Pointer, name: Buffer, _: number, type: number, bytes: Buffer, size: number) => number;
  readonly remove: (key: Pointer, name: Buffer) => number;
  readonly close: (key: Pointer) => number;
}

let found: RegistryCalls | undefined;

function calls(): RegistryCalls {
  const { advapi32 } = windowsLibraries();
  found ??= {
    open: advapi32.func('int32 __stdcall RegOpenKeyExW(void *r, void *p, uint32 o, uint32 a, void *k)'),
    query: advapi32.func('int32 __stdcall RegQueryValueExW(void *k, void *n, void *r, void *t, void *b, void *s)'),
    set: advapi32.func('int32 __stdcall RegSetValueExW(void *k, void *n, uint32 r, uint32 t, void *b, uint32 s)'),
    remove: advapi32.func('int32 __stdcall RegDeleteValueW(void *k, void *n)'),
    close: advapi32.func('int32 __stdcall RegCloseKey(void *k)'),
  };
  return found;
}

/** Undefined when there is no such key or value. @throws WindowsError, RegistryTypeError */
export const registryTexts = (path: string, name: string): readonly string[] | undefined => {
  const bytes = read(path, name, TYPE_TEXTS);
  return bytes === undefined ? undefined : textOf(bytes).split('\0').filter(Boolean);
};

/** Undefined when there is no such key or value. @throws WindowsError, RegistryTypeError */
export const registryText = (path: string, name: string): string | undefined => {
  const bytes = read(path, name, TYPE_TEXT);
  return bytes === undefined ? undefined : textOf(bytes).replace(/\0.*$/s, '');
};

/** Undefined when there is no such key or value. @throws WindowsError, RegistryTypeError */
export const registryNumber = (path: string, name: string): number | undefined =>
  read(path, name, TYPE_NUMBER)?.readUInt32LE();

/** @throws WindowsError */
export function writeRegistryTexts(path: string, name: string, texts: readonly string[]): void {
  const bytes = Buffer.from(`${texts.map((text) => `${text}\0`).join('')}\0`, 'utf16le');
  withKey(path, KEY_WRITE, (key) => {
    const code = calls().set(key, wide(name), 0, TYPE_TEXTS, bytes, bytes.length);
    if (code !== 0) throw new WindowsError(`${path}\\${name}`, code);
  });
}

/** Does nothing if there is none. @throws WindowsError */
export function removeRegistryValue(path: string, name: string): void {
  withKey(path, KEY_WRITE, (key) => {
    const code = calls().remove(key, wide(name));
    if (code !== 0 && code !== FILE_NOT_FOUND) throw new WindowsError(`${path}\\${name}`, code);
  });
}

const textOf = (bytes: Buffer): string => bytes.toString('utf16le');

function read(path: string, name: string, type: number): Buffer | undefined {
  return withKey(path, KEY_READ, (key) => {
    const found = Buffer.alloc(4);
    const bytes = Buffer.alloc(VALUE_BYTES);
    const size = Buffer.alloc(4);
    size.writeUInt32LE(bytes.length);
    const code = calls().query(key, wide(name), null, found, bytes, size);
    if (code === FILE_NOT_FOUND) return undefined;
    if (code !== 0 && code !== MORE_DATA) throw new WindowsError(`${path}\\${name}`, code);
    if (found.readUInt32LE() !== type) {
      throw new RegistryTypeError(`${path}\\${name} has type ${found.readUInt32LE()}, expected ${type}`);
    }
    if (code !== 0) throw new WindowsError(`${path}\\${name}`, code);
    return bytes.subarray(0, size.readUInt32LE());
  });
}

/** Undefined when there is no such key and it is only read. */
function withKey<Result>(path: string, access: number, act: (key: Pointer) => Result): Result | undefined {
  const opened = Buffer.alloc(8);
  const code = calls().open(LOCAL_MACHINE, wide(path), 0, access, opened);
  if (code === FILE_NOT_FOUND && access === KEY_READ) return undefined;
  if (code !== 0) throw new WindowsError(path, code);
  const key = opened.readBigUInt64LE();
  try {
    return act(key);
  } finally {
    calls().close(key);
  }
}
