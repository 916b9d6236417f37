/** Downloads, digests, signatures, and the check that a file runs on this machine. */
import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';
import { join } from 'node:path';
import type { UpdateSource } from '../../ports/update-source.ts';
import { runProgram } from '../system/run-program.ts';
import { type DownloadOptions, download } from './download.ts';

/** A slow machine with a slow disk. */
const BOUNDS = { timeoutMs: 60_000, outputBytesMax: 64 * 1024 };
const OUTPUT_CHARACTERS_SHOWN = 300;

export interface UpdateSourceOptions extends DownloadOptions {
  /** Directory of the stored files. */
  readonly directory: string;
  readonly publicKey: KeyObject;
}

/** @throws Error for a text that is no public key of Ed25519 */
export function updateKeyOf(pem: string): KeyObject {
  const key = createPublicKey(pem);
  if (key.asymmetricKeyType !== 'ed25519') throw new Error(`a key of type ${key.asymmetricKeyType}`);
  return key;
}

export function updateSource({ directory, publicKey, ...options }: UpdateSourceOptions): UpdateSource {
  return {
    download: (url, limits) => download(url, limits, options),
    isSigned: (statement, signature) =>
      verify(null, Buffer.from(statement), publicKey, Buffer.from(signature, 'base64')),
    digest() {
      const hash = createHash('sha256');
      return { update: (bytes) => void hash.update(bytes), hex: () => hash.digest('hex') };
    },
    versionOf: (fileName) => versionOf(join(directory, fileName)),
  };
}

async function versionOf(path: string): Promise<string> {
  try {
    return (await runProgram(process.execPath, [path, '--version'], BOUNDS)).trim();
  } catch (cause) {
    throw new Error((cause as Error).message.slice(0, OUTPUT_CHARACTERS_SHOWN), { cause });
  }
}
