import { execFileSync } from 'node:child_process';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Log } from '../../../shared/observability/log.ts';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import type { Enroller, KeyPair } from './enroller.ts';
import { KeyFileError, machineKey, makeNextMachineKey, nextMachineKey, presentMachineKey } from './key-file.ts';
import { KeyRing } from './key-ring.ts';

let rootDirectory: string;
let nowMs: number;
let changes: string[];
let warned: string[];
let enrolments: KeyPair[];
let named: string[];

beforeEach(() => {
  rootDirectory = folderForTest();
  nowMs = 0;
  [changes, warned, enrolments, named] = [[], [], [], []];
});

function ring(): KeyRing {
  const enroller: Partial<Enroller> = {
    async nodeLabels(pair) {
      enrolments.push(pair);
      return { site: 'north' };
    },
    nameNextKey: async ({ next }) => void named.push(`named ${next?.keyId}`),
    keyAdopted: (keyId) => void named.push(`adopted ${keyId}`),
  };
  return new KeyRing({
    ...{ nodeName: 'n1', rootDirectory, time: { monotonicMs: () => nowMs } },
    log: { warn: (message: string) => void warned.push(message) } as Partial<Log> as Log,
    enroller: enroller as Enroller,
    onSigningKeyChange: (keyId) => changes.push(keyId),
  });
}
const idOf = async (keys: KeyRing) => (await keys.signingKey()).keyId;

describe('the keys of a machine', () => {
  it('are read and enrolled once, also for concurrent requests', async () => {
    const keys = ring();
    expect(keys.signingKeyId()).toBeUndefined();
    const [first, second] = await Promise.all([keys.enrolled(), keys.enrolled()]);
    expect(await keys.enrolled()).toBe(first);
    expect(second).toBe(first);
    const onDisk = await machineKey(rootDirectory);
    expect(first).toMatchObject({ key: { keyId: onDisk.keyId }, next: undefined, nodeLabels: { site: 'north' } });
    expect(enrolments).toHaveLength(1);
    expect([await idOf(keys), keys.signingKeyId()]).toEqual([onDisk.keyId, onDisk.keyId]);
    expect(await keys.held()).toMatchObject({ current: { keyId: onDisk.keyId }, next: undefined });
  });

  it('that cannot be used are reported until they can', async () => {
    const keys = ring();
    writeFileSync(join(rootDirectory, 'node-key.pem'), 'broken', { mode: 0o600 });
    await expect(keys.enrolled()).rejects.toBeInstanceOf(KeyFileError);
    expect(keys.complaint()).toMatch(/not a private key/);
    rmSync(join(rootDirectory, 'node-key.pem'));
    await keys.enrolled();
    expect(keys.complaint()).toBeUndefined();
  });

  it('do not need a next key that cannot be used', async () => {
    writeFileSync(join(rootDirectory, 'node-key.next.pem'), 'broken', { mode: 0o600 });
    expect((await ring().enrolled()).next).toBeUndefined();
    expect(warned).toEqual(['the next key of this machine cannot be used']);
  });
});

describe('a rotation', () => {
  it('makes a next key, signs with it, and adopts it', async () => {
    const keys = ring();
    const old = await idOf(keys);
    const next = await keys.makeNext();
    expect(await idOf(keys)).toBe(old);
    keys.signWithNext();
    keys.signWithNext();
    expect([await idOf(keys), changes]).toEqual([next.keyId, [next.keyId]]);
    await keys.adoptNext();
    expect((await presentMachineKey(rootDirectory))?.keyId).toBe(next.keyId);
    expect(await nextMachineKey(rootDirectory)).toBeUndefined();
    expect(await keys.held()).toMatchObject({ current: { keyId: next.keyId }, next: undefined });
    expect(named).toEqual([`named ${next.keyId}`, `adopted ${next.keyId}`]);
    expect(changes).toEqual([next.keyId, next.keyId]);
    await keys.adoptNext();
    expect(named).toHaveLength(2);
    await keys.makeNext();
    expect(await idOf(keys)).toBe(next.keyId);
  });

  it('of another agent on this disk is found, and the key that signed signs on', async () => {
    const keys = ring();
    const old = await idOf(keys);
    const next = await makeNextMachineKey(rootDirectory);
    expect(await keys.held()).toMatchObject({ current: { keyId: old }, next: { keyId: next.keyId } });
    expect([await idOf(keys), changes]).toEqual([old, [old]]);
    expect(await keys.held()).toMatchObject({ next: { keyId: next.keyId } });
    expect(changes).toHaveLength(1);
    keys.signWithNext();
    renameSync(join(rootDirectory, 'node-key.next.pem'), join(rootDirectory, 'node-key.pem'));
    await keys.held();
    expect(await idOf(keys)).toBe(next.keyId);
  });

  it('signs with the next key also after another agent replaced the current one', async () => {
    const keys = ring();
    const old = await idOf(keys);
    const next = await keys.makeNext();
    keys.signWithNext();
    rmSync(join(rootDirectory, 'node-key.pem'));
    const { keyId } = await machineKey(rootDirectory);
    expect(keyId).not.toBe(old);
    expect(await keys.held()).toMatchObject({ current: { keyId }, next: { keyId: next.keyId } });
    expect([await idOf(keys), changes]).toEqual([next.keyId, [next.keyId, next.keyId]]);
  });

  it('keeps a step that ends while the files are read again', async () => {
    const keys = ring();
    await keys.enrolled();
    const [file, pipe] = [join(rootDirectory, 'node-key.next.pem'), join(rootDirectory, 'pipe')];
    execFileSync('mkfifo', ['-m', '600', file]);
    const held = keys.held();
    // Opens when the read has.
    const writer = await open(file, 'w');
    renameSync(file, pipe);
    const next = await keys.makeNext();
    await writer.close();
    expect((await held).next?.keyId).toBe(next.keyId);
  });

  it('keeps the keys in memory when the file no longer exists', async () => {
    const keys = ring();
    const old = await idOf(keys);
    rmSync(join(rootDirectory, 'node-key.pem'));
    expect((await keys.held()).current.keyId).toBe(old);
    expect(changes).toEqual([]);
  });
});

describe('a refused key', () => {
  async function withTwo() {
    await machineKey(rootDirectory);
    await makeNextMachineKey(rootDirectory);
    const keys = ring();
    const { key, next } = await keys.enrolled();
    return { keys, current: key.keyId, next: next?.keyId ?? '' };
  }

  it('is replaced by the other one, and by the one that was accepted last if both are refused', async () => {
    const { keys, current, next } = await withTwo();
    expect(keys.refused(current)).toBe('otherKey');
    // The files are not read again.
    writeFileSync(join(rootDirectory, 'node-key.pem'), 'broken');
    expect([await idOf(keys), warned.length]).toEqual([next, 1]);
    keys.accepted(current);
    expect(keys.refused(next)).toBe('bothRefused');
    expect(await idOf(keys)).toBe(current);
    nowMs += 60_000;
    expect(keys.refused(current)).toBe('otherKey');
    expect(await idOf(keys)).toBe(next);
  });

  it('stays when there is no other one', async () => {
    const keys = ring();
    const only = await idOf(keys);
    expect(keys.refused(only)).toBe('onlyKey');
    expect([await idOf(keys), warned]).toEqual([only, []]);
  });

  it('signs again if the next one is refused, although it was refused before the rotation', async () => {
    const keys = ring();
    const only = await idOf(keys);
    keys.refused(only);
    const next = await keys.makeNext();
    keys.signWithNext();
    expect(keys.refused(next.keyId)).toBe('otherKey');
    expect(await idOf(keys)).toBe(only);
  });

  it('is looked for on disk, once a minute, while no key is accepted', async () => {
    const keys = ring();
    const only = await idOf(keys);
    await makeNextMachineKey(rootDirectory);
    const adopt = () => renameSync(join(rootDirectory, 'node-key.next.pem'), join(rootDirectory, 'node-key.pem'));
    keys.refused(only);
    expect(await idOf(keys)).toBe(only);
    adopt();
    const replaced = (await presentMachineKey(rootDirectory))?.keyId ?? '';
    nowMs += 59_999;
    expect(await idOf(keys)).toBe(only);
    nowMs += 1;
    expect(await idOf(keys)).toBe(replaced);
    keys.accepted(replaced);
    await makeNextMachineKey(rootDirectory);
    adopt();
    nowMs += 60_000;
    expect(await idOf(keys)).toBe(replaced);
  });

  it('signs on when the files cannot be read again', async () => {
    const keys = ring();
    const only = await idOf(keys);
    keys.refused(only);
    writeFileSync(join(rootDirectory, 'node-key.pem'), 'broken');
    expect(await idOf(keys)).toBe(only);
    expect(warned).toEqual(['the keys could not be read again']);
  });
});
