/**
 * Seals with a secret that this machine has anyway: its private key, or its configured token. Who reads the file of the
 * state alone, such as a backup of it, learns no Secret. AES-256-GCM, with a key derived by HKDF.
 *
 * While two keys are on disk (agent/app/key-rotation.ts) the next one seals, because it stays; both open.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { AgentConfig } from '../../config.ts';
import type { Sealer } from '../../ports/sealer.ts';
import { nextMachineKey, presentMachineKey } from './key-file.ts';

const CIPHER = 'aes-256-gcm';
const PURPOSE = 'nodekeeper remembered pods';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export function machineSealer({ rootDirectory, token }: Pick<AgentConfig, 'rootDirectory' | 'token'>): Sealer {
  /** The one that seals first. */
  async function keys(): Promise<readonly Buffer[]> {
    if (token !== undefined) return [keyFrom(token)];
    const held = [await nextMachineKey(rootDirectory), await presentMachineKey(rootDirectory)];
    return held.flatMap((each) =>
      each === undefined ? [] : [keyFrom(each.privateKey.export({ type: 'pkcs8', format: 'der' }))],
    );
  }
  return {
    async seal(text) {
      const [key] = await keys();
      if (key === undefined) throw new Error('this machine has no key yet');
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, key, nonce);
      const sealed = [cipher.update(text, 'utf8'), cipher.final()];
      return Buffer.concat([nonce, cipher.getAuthTag(), ...sealed]).toString('base64');
    },
    async open(sealed) {
      const bytes = Buffer.from(sealed, 'base64');
      if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
      for (const key of await keys()) {
        const text = opened(bytes, key);
        if (text !== undefined) return text;
      }
      return undefined;
    },
  };
}

const keyFrom = (secret: string | Buffer): Buffer => Buffer.from(hkdfSync('sha256', secret, '', PURPOSE, KEY_BYTES));

function opened(bytes: Buffer, key: Buffer): string | undefined {
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES));
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  try {
    const text = decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES));
    return Buffer.concat([text, decipher.final()]).toString('utf8');
  } catch {
    // Sealed with another key, or changed.
    return undefined;
  }
}
