import { generateKeyPairSync } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { onPlatform } from '../../../test/support/on-platform.ts';
import { openedBelow } from '../../../test/support/opened-below.ts';
import {
  adoptNextMachineKey,
  KeyFileError,
  machineKey,
  makeNextMachineKey,
  nextMachineKey,
  presentMachineKey,
  UnfitKeyError,
} from './key-file.ts';

const CURRENT = 'node-key.pem';
const NEXT = 'node-key.next.pem';
let root: string;
const at = (name: string): string => join(root, name);
beforeEach(() => {
  root = join(folderForTest(), 'deep', 'state');
});

describe('the key of a machine', () => {
  it('is created once, for its owner alone', async () => {
    expect(await presentMachineKey(root)).toBeUndefined();
    expect(existsSync(root)).toBe(false);
    const key = await machineKey(root);
    expect(key.publicKey).toMatchObject({ kty: 'EC', crv: 'P-256' });
    expect([statSync(at(CURRENT)).mode & 0o777, statSync(root).mode & 0o777]).toEqual([0o600, 0o700]);
    expect([readdirSync(root), openedBelow(root)]).toEqual([[CURRENT], []]);
    expect([(await machineKey(root)).keyId, (await presentMachineKey(root))?.keyId]).toEqual([key.keyId, key.keyId]);
    expect(readFileSync(at(CURRENT), 'utf8')).toContain('PRIVATE KEY');
  });

  it('is the same for all that create it at once', async () => {
    const keys = await Promise.all([machineKey(root), machineKey(root), machineKey(root)]);
    expect(new Set(keys.map(({ keyId }) => keyId)).size).toBe(1);
    expect(readdirSync(root)).toEqual([CURRENT]);
  });

  it.each([0o640, 0o604, 0o601])('is not used when others may read it: %o', async (mode) => {
    await machineKey(root);
    chmodSync(at(CURRENT), mode);
    await expect(machineKey(root)).rejects.toThrow(`others may read the key of this machine; chmod 600 ${at(CURRENT)}`);
    await expect(presentMachineKey(root)).rejects.toThrow(UnfitKeyError);
  });

  it('needs no such mode on Windows, where the directory protects it', async () => {
    const { keyId } = await machineKey(root);
    chmodSync(at(CURRENT), 0o644);
    onPlatform('win32');
    expect((await presentMachineKey(root))?.keyId).toBe(keyId);
  });

  it.each([
    ['text', 'not a key', 'not a private key'],
    ['a key of another kind', ed25519Pem(), 'not a private key of P-256'],
  ])('is not %s', async (_what, text, message) => {
    mkdirSync(root, { recursive: true });
    writeFileSync(at(CURRENT), text, { mode: 0o600 });
    await expect(machineKey(root)).rejects.toThrow(message);
    await expect(machineKey(root)).rejects.toThrow(UnfitKeyError);
    expect(readFileSync(at(CURRENT), 'utf8')).toBe(text);
  });

  it('says which file cannot be read or created', async () => {
    mkdirSync(join(at(CURRENT), 'x'), { recursive: true, mode: 0o700 });
    chmodSync(at(CURRENT), 0o700);
    const failure = machineKey(root);
    await expect(failure).rejects.toThrow(`the key of this machine could not be read or created: ${at(CURRENT)}`);
    await expect(failure).rejects.toMatchObject({ name: 'KeyFileError', cause: { code: 'EISDIR' } });
    await expect(presentMachineKey(root)).rejects.toThrow('the key of this machine could not be read: ');
    await expect(adoptNextMachineKey(root, 'x')).rejects.toThrow(KeyFileError);
  });
});

function ed25519Pem(): string {
  return generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

describe('the next key', () => {
  it('is created beside the current one, and replaces it', async () => {
    const current = await machineKey(root);
    expect(await nextMachineKey(root)).toBeUndefined();
    const next = await makeNextMachineKey(root);
    expect(next.keyId).not.toBe(current.keyId);
    expect([(await makeNextMachineKey(root)).keyId, (await nextMachineKey(root))?.keyId]).toEqual([
      next.keyId,
      next.keyId,
    ]);
    expect((await machineKey(root)).keyId).toBe(current.keyId);
    await adoptNextMachineKey(root, next.keyId);
    expect([(await machineKey(root)).keyId, await nextMachineKey(root)]).toEqual([next.keyId, undefined]);
    expect(readdirSync(root)).toEqual([CURRENT]);
  });

  it('is created again when it must not be used', async () => {
    await machineKey(root);
    writeFileSync(at(NEXT), 'half a ke', { mode: 0o600 });
    const next = await makeNextMachineKey(root);
    expect((await nextMachineKey(root))?.keyId).toBe(next.keyId);
    chmodSync(at(NEXT), 0o644);
    await expect(nextMachineKey(root)).rejects.toThrow(UnfitKeyError);
    expect((await makeNextMachineKey(root)).keyId).not.toBe(next.keyId);
  });

  it('stays when it cannot be read', async () => {
    mkdirSync(at(NEXT), { recursive: true, mode: 0o700 });
    await expect(makeNextMachineKey(root)).rejects.toMatchObject({ cause: { code: 'EISDIR' } });
    expect(existsSync(at(NEXT))).toBe(true);
    await expect(nextMachineKey(root)).rejects.toThrow('the next key of this machine could not be read: ');
  });

  it('replaces nothing when it is another one, or missing', async () => {
    const current = await machineKey(root);
    await expect(adoptNextMachineKey(root, 'x')).rejects.toThrow('was replaced or removed');
    await makeNextMachineKey(root);
    await expect(adoptNextMachineKey(root, 'x')).rejects.toThrow('was replaced or removed');
    expect([(await machineKey(root)).keyId, readdirSync(root).length]).toEqual([current.keyId, 2]);
  });
});
