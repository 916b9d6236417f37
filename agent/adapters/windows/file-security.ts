/** Owners and access lists of files. */
import { type Pointer, required, WindowsError, wide, windowsLibraries } from './foreign.ts';

export const SYSTEM_SID = 'S-1-5-18';
export const ADMINISTRATORS_SID = 'S-1-5-32-544';

/** Of administrators, for them and the system itself: the directory has the key of the machine. In SDDL. */
const ADMINISTRATORS_ONLY = 'O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)';
const SDDL_REVISION = 1;
const OWNER = 1;
const DESCRIPTOR_BYTES = 65_536;
/** SECURITY_ATTRIBUTES. */
const ATTRIBUTES_BYTES = 24;

interface SecurityCalls {
  readonly parse: (text: Buffer, revision: number, descriptor: Buffer, size: null) => boolean;
  readonly make: (path: Buffer, attributes: Buffer) => boolean;
  readonly read: (path: Buffer, what: number, descriptor: Buffer, size: number, needed: Buffer) => boolean;
  readonly owner: (descriptor: Buffer, owner: Buffer, isDefault: Buffer) => boolean;
  readonly sidText: (sid: Pointer, text: Buffer) => boolean;
  readonly length: (text: Pointer) => number;
  readonly copy: (to: Buffer, from: Pointer, characters: number) => Pointer | null;
  readonly free: (memory: Pointer) => Pointer | null;
}

let found: SecurityCalls | undefined;

function calls(): SecurityCalls {
  const { advapi32, kernel32 } = windowsLibraries();
  found ??= {
    parse: advapi32.func(
      'bool __stdcall ConvertStringSecurityDescriptorToSecurityDescriptorW(void *t, uint32 r, void *d, void *s)',
    ),
    make: kernel32.func('bool __stdcall CreateDirectoryW(void *p, void *a)'),
    read: advapi32.func('bool __stdcall GetFileSecurityW(void *p, uint32 w, void *d, uint32 s, void *n)'),
    owner: advapi32.func('bool __stdcall GetSecurityDescriptorOwner(void *d, void *o, void *f)'),
    sidText: advapi32.func('bool __stdcall ConvertSidToStringSidW(void *s, void *t)'),
    length: kernel32.func('int32 __stdcall lstrlenW(void *t)'),
    copy: kernel32.func('void *__stdcall lstrcpynW(void *t, void *f, int32 n)'),
    free: kernel32.func('void *__stdcall LocalFree(void *m)'),
  };
  return found;
}

/** Creates a directory that only administrators can enter, from its first moment on. @throws WindowsError */
export function makePrivateDirectory(path: string): void {
  const descriptor = Buffer.alloc(8);
  required('a security descriptor', calls().parse(wide(ADMINISTRATORS_ONLY), SDDL_REVISION, descriptor, null));
  const address = descriptor.readBigUInt64LE();
  try {
    const attributes = Buffer.alloc(ATTRIBUTES_BYTES);
    attributes.writeUInt32LE(ATTRIBUTES_BYTES);
    attributes.writeBigUInt64LE(address, 8);
    if (!calls().make(wide(path), attributes)) throw new WindowsError(path, windowsLibraries().lastError());
  } finally {
    calls().free(address);
  }
}

/** The owner of a file or directory, such as `S-1-5-18`. @throws WindowsError */
export function ownerOf(path: string): string {
  const descriptor = Buffer.alloc(DESCRIPTOR_BYTES);
  const needed = Buffer.alloc(4);
  required(`owner of ${path}`, calls().read(wide(path), OWNER, descriptor, descriptor.length, needed));
  const sid = Buffer.alloc(8);
  required(`owner of ${path}`, calls().owner(descriptor, sid, Buffer.alloc(4)));
  const text = Buffer.alloc(8);
  required(`owner of ${path}`, calls().sidText(sid.readBigUInt64LE(), text));
  const address = text.readBigUInt64LE();
  try {
    const characters = calls().length(address) + 1;
    const copy = Buffer.alloc(characters * 2);
    calls().copy(copy, address, characters);
    return copy.toString('utf16le', 0, (characters - 1) * 2);
  } finally {
    calls().free(address);
  }
}
