import { expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { adoptNextMachineKey, machineKey, makeNextMachineKey } from './key-file.ts';
import { machineSealer } from './machine-sealer.ts';

it('opens what it sealed with the key of the machine, and nothing that was changed', async () => {
  const rootDirectory = folderForTest();
  const sealer = machineSealer({ rootDirectory });
  await expect(sealer.seal('secret')).rejects.toThrow('this machine has no key yet');
  await machineKey(rootDirectory);
  const sealed = await sealer.seal('secret');
  expect(Buffer.from(sealed, 'base64').toString('latin1')).not.toContain('secret');
  expect(await machineSealer({ rootDirectory }).open(sealed)).toBe('secret');
  expect(await sealer.seal('secret')).not.toBe(sealed);
  expect(await sealer.open(await sealer.seal(''))).toBe('');
  const bytes = Buffer.from(sealed, 'base64');
  for (let index = 0; index < bytes.length; index += 1) {
    const changed = Buffer.from(bytes);
    changed[index]! ^= 1;
    expect(await sealer.open(changed.toString('base64'))).toBeUndefined();
  }
  expect(await sealer.open('')).toBeUndefined();
});

it('opens it during a rotation of the key, and after it what was sealed before it ended', async () => {
  const rootDirectory = folderForTest();
  const sealer = machineSealer({ rootDirectory });
  await machineKey(rootDirectory);
  const before = await sealer.seal('before');
  const next = await makeNextMachineKey(rootDirectory);
  const during = await sealer.seal('during');
  expect([await sealer.open(before), await sealer.open(during)]).toEqual(['before', 'during']);
  await adoptNextMachineKey(rootDirectory, next.keyId);
  expect([await sealer.open(before), await sealer.open(during)]).toEqual([undefined, 'during']);
});

it('seals with the configured token of a machine that has no key', async () => {
  const rootDirectory = folderForTest();
  const sealed = await machineSealer({ rootDirectory, token: 'a' }).seal('secret');
  expect(await machineSealer({ rootDirectory, token: 'a' }).open(sealed)).toBe('secret');
  expect(await machineSealer({ rootDirectory, token: 'b' }).open(sealed)).toBeUndefined();
});

it('opens what an earlier release sealed', async () => {
  const sealed = 'KEbVAIyhyrtnl+aHlH87RTYqeH7gocGR5zk0u8SW99vj1Q==';
  expect(await machineSealer({ rootDirectory: folderForTest(), token: 'a' }).open(sealed)).toBe('secret');
});
