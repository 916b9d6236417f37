/**
 * The machine's private keys: the current one, and during a rotation the next one. They are created here, readable by
 * their owner only, and never sent.
 *
 *   node-key.pem         the current key
 *   node-key.next.pem    the next key; renamed over the current one when it replaces it
 *
 * A key is written in full under another name and then linked. A power cut leaves either no key or a complete one, and
 * two agents that start at once use the same key. Each function returns after the file and its name are synced to the
 * disk.
 */
import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { publicKeyOf } from '../../../shared/access/node-identity.ts';
import { thumbprintOf } from '../../../shared/access/public-keys.ts';
import { makeDirectory } from '../../../shared/host/directory.ts';
import type { PublicHalf } from '../../ports/machine-keys.ts';
import * as files from '../system/files.ts';
import { syncDirectory } from '../system/state-file.ts';

export interface MachineKey extends PublicHalf {
  readonly privateKey: KeyObject;
}

/** A key file exists and must not be used, or it cannot be read or created. */
export class KeyFileError extends Error {
  override readonly name = 'KeyFileError';
}

const CURRENT = 'node-key.pem';
const NEXT = 'node-key.next.pem';
const OWNER_ONLY = 0o600;
const OTHERS = 0o077;

/** Reads the key of this machine, or creates it. Rejects with a KeyFileError. */
export const machineKey = (rootDirectory: string): Promise<MachineKey> => keyIn(rootDirectory, CURRENT);

/** Reads the key of this machine; undefined if there is none. Rejects with a KeyFileError. */
export const presentMachineKey = (rootDirectory: string): Promise<MachineKey | undefined> =>
  withKeyFileError('the key of this machine could not be read', join(rootDirectory, CURRENT), read);

/** Reads the next key; undefined if there is none. Rejects with a KeyFileError. */
export const nextMachineKey = (rootDirectory: string): Promise<MachineKey | undefined> =>
  withKeyFileError('the next key of this machine could not be read', join(rootDirectory, NEXT), read);

/** Reads the next key, or creates it. An unusable one is replaced. Rejects with a KeyFileError. */
export async function makeNextMachineKey(rootDirectory: string): Promise<MachineKey> {
  try {
    return await keyIn(rootDirectory, NEXT);
  } catch (error) {
    if (!(error instanceof UnfitKeyError)) throw error;
    await files.rm(join(rootDirectory, NEXT));
    return keyIn(rootDirectory, NEXT);
  }
}

/** Replaces the current key with the next one, which must have this id. Rejects with a KeyFileError. */
export async function adoptNextMachineKey(rootDirectory: string, keyId: string): Promise<void> {
  await withKeyFileError(
    'the key of this machine could not be replaced',
    join(rootDirectory, CURRENT),
    async (path) => {
      const next = await read(join(rootDirectory, NEXT));
      if (next?.keyId !== keyId)
        throw new KeyFileError(`the next key of this machine was replaced or removed: ${NEXT}`);
      await files.rename(join(rootDirectory, NEXT), path);
      await syncDirectory(rootDirectory);
    },
  );
}

/** The file is not a private key, or other users may read it. Only an administrator can repair this. */
export class UnfitKeyError extends KeyFileError {}

async function keyIn(rootDirectory: string, name: string): Promise<MachineKey> {
  return withKeyFileError(
    'the key of this machine could not be read or created',
    join(rootDirectory, name),
    async (path) => {
      const present = await read(path);
      if (present !== undefined) return present;
      makeDirectory(rootDirectory, 0o700);
      await write(path);
      await syncDirectory(rootDirectory);
      const made = await read(path);
      if (made !== undefined) return made;
      throw new KeyFileError(`the key of this machine was removed right after it was created: ${path}`);
    },
  );
}

/** Wraps any other error in a KeyFileError. */
async function withKeyFileError<Result>(
  message: string,
  path: string,
  act: (path: string) => Promise<Result>,
): Promise<Result> {
  try {
    return await act(path);
  } catch (cause) {
    if (cause instanceof KeyFileError) throw cause;
    throw new KeyFileError(`${message}: ${path}`, { cause });
  }
}

async function read(path: string): Promise<MachineKey | undefined> {
  let pem: string;
  try {
    // Windows has no such bits; the permissions of the directory apply there.
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
    // Another agent was first: its key is the machine's key.
    if (code === 'EEXIST') return;
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'EOPNOTSUPP') throw cause;
    // The file system has no hard links, such as FAT.
    await files.rename(temporary, path);
  } finally {
    // A second name of the same key, or an incomplete file.
    await files.rm(temporary).catch(() => undefined);
  }
}
