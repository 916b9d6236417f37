/**
 * The machine's private key: made once, readable by its owner alone, and never sent anywhere.
 *
 * It is written whole under another name and then linked, so that a power cut leaves either no key or a good one, and of
 * two agents that start at once both use the same.
 */
import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { thumbprintOf } from '../../../shared/adapters/tokens/public-keys.ts';
import { type NodePublicKey, publicKeyOf } from '../../../shared/domain/node-identity.ts';
import { close, fsync, link, mkdir, open, readFile, rename, rm, stat, writeFile } from '../system/files.ts';

export interface MachineKey {
  readonly privateKey: KeyObject;
  readonly publicKey: NodePublicKey;
  /** RFC 7638 thumbprint. */
  readonly keyId: string;
}

/** A key that is there and must not be used, or cannot be read or made. */
export class KeyFileError extends Error {
  override readonly name = 'KeyFileError';
}

const FILE = 'node-key.pem';
const OWNER_ONLY = 0o600;
const OTHERS = 0o077;

/** Reads the key of this machine, or makes it. Rejects with a KeyFileError. */
export async function machineKey(rootDirectory: string): Promise<MachineKey> {
  const path = join(rootDirectory, FILE);
  try {
    const present = await read(path);
    if (present !== undefined) return present;
    await mkdir(rootDirectory, { recursive: true, mode: 0o700 });
    await write(path);
    const made = await read(path);
    if (made !== undefined) return made;
  } catch (cause) {
    if (cause instanceof KeyFileError) throw cause;
    throw new KeyFileError(`the key of this machine could not be read or made: ${path}`, { cause });
  }
  throw new KeyFileError(`the key of this machine is gone again: ${path}`);
}

async function read(path: string): Promise<MachineKey | undefined> {
  let pem: string;
  try {
    // Windows has no such bits; there the directory's own permissions hold.
    const open = process.platform === 'win32' ? 0 : (await stat(path)).mode & OTHERS;
    if (open !== 0) throw new KeyFileError(`others may read the key of this machine; chmod 600 ${path}, or remove it`);
    pem = await readFile(path, 'utf8');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw cause;
  }
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(pem);
  } catch (cause) {
    throw new KeyFileError(`not a private key: ${path}`, { cause });
  }
  const publicKey = publicKeyOf(createPublicKey(privateKey).export({ format: 'jwk' }) as Record<string, unknown>);
  if (publicKey?.kty !== 'EC') throw new KeyFileError(`not a private key of P-256: ${path}`);
  return { privateKey, publicKey, keyId: thumbprintOf(publicKey) };
}

async function write(path: string): Promise<void> {
  const { privateKey } = await promisify(generateKeyPair)('ec', { namedCurve: 'P-256' });
  const temporary = `${path}.${randomUUID()}.new`;
  const file = await open(temporary, 'wx', OWNER_ONLY);
  try {
    await writeFile(file, privateKey.export({ type: 'pkcs8', format: 'pem' }));
    await fsync(file);
  } finally {
    await close(file);
  }
  try {
    await link(temporary, path);
    await rm(temporary);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    // Somebody else's key came first: it is the machine's.
    if (code === 'EEXIST') return rm(temporary);
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'EOPNOTSUPP') throw cause;
    // A file system without links, such as FAT.
    await rename(temporary, path);
  }
}
