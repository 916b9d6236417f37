import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { lockStore } from './store-lock.ts';

it.each(['pid', 'lock'])('nothing is written through a link in place of the %s file', (suffix) => {
  const directory = mkdtempSync(join(tmpdir(), 'nk-lock-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const [database, other] = [join(directory, 'nodekeeper.db'), join(directory, 'other')];
  writeFileSync(other, '');
  symlinkSync(other, `${database}.${suffix}`);
  lockStore(database).release();
  expect(readFileSync(other, 'utf8')).toBe('');
});
