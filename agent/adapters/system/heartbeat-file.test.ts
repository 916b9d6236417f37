import { readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { heartbeatFile, permitFile } from './heartbeat-file.ts';

const owner = { nodeName: 'edge-1', clusterId: 'c1' };

it('is replaced as a whole, for each node of the machine and each boot', async () => {
  const directory = folderForTest();
  const file = heartbeatFile(directory, owner, () => 'b1');
  expect(await file.read(9)).toBeUndefined();
  await file.write({ uptimeMs: 1, wallMs: 1 });
  await file.write({ uptimeMs: 2, wallMs: 3 });
  expect(await file.read(9)).toEqual({ uptimeMs: 2, wallMs: 3 });
  expect(readdirSync(directory)).toEqual(['heartbeat-edge-1.json']);
  expect(statSync(join(directory, 'heartbeat-edge-1.json')).mode & 0o777).toBe(0o600);
  expect(await heartbeatFile(directory, { ...owner, nodeName: 'edge-2' }, () => 'b1').read(9)).toBeUndefined();
  expect(await heartbeatFile(directory, owner, () => 'b2').read(9)).toBeUndefined();
});

it('is absent when it was cut off, and says when it cannot be read or written', async () => {
  const directory = folderForTest();
  const file = heartbeatFile(directory, owner, () => 'b1');
  writeFileSync(join(directory, 'heartbeat-edge-1.json'), '{"bootId":"b1","no');
  expect(await file.read(9)).toBeUndefined();
  const unreadable = heartbeatFile(directory, owner, () => {
    throw new Error('no /proc');
  });
  await expect(unreadable.read(9)).rejects.toThrow('no /proc');
  rmSync(directory, { recursive: true });
  await expect(file.write({ uptimeMs: 1, wallMs: 1 })).rejects.toThrow('ENOENT');
});

it('permits are kept beside it, for each node and each boot', async () => {
  const directory = folderForTest();
  const permits = { hub: 'h1', permits: { uid: { uptimeMs: 2, wallMs: 3 } }, copies: [] };
  const file = permitFile(directory, { ...owner, nodeName: 'edge/1' }, () => 'b1');
  expect(await file.read(9)).toBeUndefined();
  await file.write(permits);
  expect(await file.read(9)).toEqual(permits);
  expect(readdirSync(directory)).toEqual(['permits-edge%2F1.json']);
  expect(statSync(join(directory, 'permits-edge%2F1.json')).mode & 0o777).toBe(0o600);
  expect(await permitFile(directory, { ...owner, nodeName: 'edge/1' }, () => 'b2').read(9)).toBeUndefined();
});
