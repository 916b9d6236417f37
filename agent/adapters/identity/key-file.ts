/**
 * The machine's private keys: the one that counts, and while it is being replaced the one to come. Made here, readable by
 * their owner alone, and never sent anywhere.
 *
 *   node-key.pem         counts
 *   node-key.next.pem    will: renamed over the other
 *
 * A key is written whole under another name and then linked, so that a power cut leaves either no key or a good one, and of
 * two agents that start at once both use the same. What a change leaves behind lies on the disk, its name included,
 * before anybody is told of it.
 */
import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { thumbprintOf } from '../../../shared/adapters/tokens/public-keys.ts';
import { publicKeyOf } from '../../../shared/domain/access/node-identity.ts';
import type { PublicHalf } from '../../ports/machine-keys.ts';
import { makeDirectory } from '../system/directory.ts';
import * as files from '../system/files.ts';
import { syncDirectory } from '../system/state-file.ts';

export interface MachineKey extends PublicHalf {
  readonly privateKey: KeyObject;
}

/** A key that is there and must not be used, or cannot be read or made. */
export class KeyFileError extends Error {
  override readonly name = 'KeyFileError';
}

const CURRENT = 'node-key.pem';
const NEXT = 'node-key.next.pem';
const OWNER_ONLY = 0o600;
const OTHERS = 0o077;

/** Reads the key of this machine, or makes it. Rejects with a KeyFileError. */
export const machineKey = (rootDirectory: string): Promise<MachineKey> => keyIn(rootDirectory, CURRENT);

/** The key of this machine; undefined when there is none, and none is made. Rejects with a KeyFileError. */
export const presentMachineKey = (rootDirectory: string): Promise<MachineKey | undefined> =>
  told('the key of this machine could not be read', join(rootDirectory, CURRENT), read);

/** The key to come; undefined when there is none. Rejects with a KeyFileError. */
export const nextMachineKey = (rootDirectory: string): Promise<MachineKey | undefined> =>
  told('the next key of this machine could not be read', join(rootDirectory, NEXT), read);

/** Makes the key to come, or reads the one that is there. One that cannot be used is replaced. Rejects with a KeyFileError. */
export async function makeNextMachineKey(rootDirectory: string): Promise<MachineKey> {
  try {
    return await keyIn(rootDirectory, NEXT);
  } catch (error) {
    if (!(error instanceof UnfitKeyError)) throw error;
    await files.rm(join(rootDirectory, NEXT), { force: true });
    return keyIn(rootDirectory, NEXT);
  }
}

/** Puts the key to come, which must still be this one, in the place of the current one. Rejects with a KeyFileError. */
export async function adoptNextMachineKey(rootDirectory: string, keyId: string): Promise<void> {
  await told('the key of this machine could not be replaced', join(rootDirectory, CURRENT), async (path) => {
    const next = await read(join(rootDirectory, NEXT));
    if (next?.keyId !== keyId) throw new KeyFileError(`the next key of this machine is another one or gone: ${NEXT}`);
    await files.rename(join(rootDirectory, NEXT), path);
    await syncDirectory(rootDirectory);
  });
}

/** It is there, and is no key or one that others may read. Nothing but a person changes that. */
export class UnfitKeyError extends KeyFileError {}

async function keyIn(rootDirectory: string, name: string): Promise<MachineKey> {
  return told('the key of this machine could not be read or made', join(rootDirectory, name), async (path) => {
    const present = await read(path);
    if (present !== undefined) return present;
    makeDirectory(rootDirectory, 0o700);
    await write(path);
    await syncDirectory(rootDirectory);
    const made = await read(path);
    if (made !== undefined) return made;
    throw new KeyFileError(`the key of this machine is gone again: ${path}`);
  });
}

/** What goes wrong below is told as a KeyFileError. */
async function told<Result>(what: string, path: string, act: (path: string) => Promise<Result>): Promise<Result> {
  try {
    return await act(path);
  } catch (cause) {
    if (cause instanceof KeyFileError) throw cause;
    throw new KeyFileError(`${what}: ${path}`, { cause });
  }
}

async function read(path: string): Promise<MachineKey | undefined> {
  let pem: string;
  try {
    // Windows has no such bits; there the directory's own permissions hold.
    const open = process.platform === 'win32' ? 0 : (await files.stat(path)).mode & OTHERS;
    if (open !== 0) throw new UnfitKeyError(`others may read the key of this machine; chmod 600 ${path}, or remove it`);
    pem = await files.readFile(path, 'utf8');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw cause;
  }
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(pem);
  } catch (cause) {
    throw new UnfitKeyError(`not a private key: ${path}`, { cause });
  }
  const publicKey = publicKeyOf(createPublicKey(privateKey).export({ format: 'jwk' }) as Record<string, unknown>);
  if (publicKey?.kty !== 'EC') throw new UnfitKeyError(`not a private key of P-256: ${path}`);
  return { privateKey, publicKey, keyId: thumbprintOf(publicKey) };
}

async function write(path: string): Promise<void> {
  const { privateKey } = await promisify(generateKeyPair)('ec', { namedCurve: 'P-256' });
  const temporary = `${path}.${randomUUID()}.new`;
  try {
    const file = await files.open(temporary, 'wx', OWNER_ONLY);
    try {
      await files.writeFile(file, privateKey.export({ type: 'pkcs8', format: 'pem' }));
      await files.fsync(file);
    } finally {
      await files.close(file);
    }
    await files.link(temporary, path);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    // Somebody else's key came first: it is the machine's.
    if (code === 'EEXIST') return;
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'EOPNOTSUPP') throw cause;
    // A file system without links, such as FAT.
    await files.rename(temporary, path);
  } finally {
    // Another name of the same key, or half of one that nobody uses.
    await files.rm(temporary, { force: true }).catch(() => undefined);
  }
}
