import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { readEnrolment, writeEnrolment } from './enrolment-file.ts';

const ENROLMENT = { clusterId: 'c', nodeName: 'n1', keyId: 'k', bootstrapTokenId: 'abcdef', nodeLabels: { zone: 'a' } };
let directory: string;
let file: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'nodekeeper-enrolment-'));
  file = join(directory, 'node-identity.json');
});
afterEach(() => rmSync(directory, { recursive: true }));

it('is absent before the first write, and then what was written', async () => {
  expect(await readEnrolment(directory)).toBeUndefined();
  await writeEnrolment(directory, ENROLMENT);
  expect(await readEnrolment(directory)).toEqual(ENROLMENT);
});

it.each([
  'not JSON',
  '[]',
  JSON.stringify({ ...ENROLMENT, keyId: 7 }),
  JSON.stringify({ ...ENROLMENT, nodeLabels: undefined }),
  JSON.stringify({ ...ENROLMENT, nodeLabels: { zone: 'a', rack: 1 } }),
])('counts as absent when it is %s', async (text) => {
  writeFileSync(file, text);
  expect(await readEnrolment(directory)).toBeUndefined();
});

it('is no reason to enrol again when the disk cannot be read', async () => {
  mkdirSync(file);
  await expect(readEnrolment(directory)).rejects.toMatchObject({ code: 'EISDIR' });
});
