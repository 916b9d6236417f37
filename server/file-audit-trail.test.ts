import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { AuditLine } from '../shared/access/audit.ts';
import { AuditLogError, fileAuditTrail } from './file-audit-trail.ts';

const folder = mkdtempSync(join(tmpdir(), 'audit-'));
afterAll(() => rmSync(folder, { recursive: true }));

const line = (code: number) => ({ code }) as AuditLine;
const codesIn = (file: string) =>
  readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((text) => JSON.parse(text).code);

it('has the lines of concurrent writes once, in their order', async () => {
  const file = join(folder, 'many.log');
  const trail = fileAuditTrail(file);
  const codes = Array.from({ length: 100 }, (_, index) => index);
  await trail.record(line(-1));
  await Promise.all(codes.map((code) => trail.record(line(code))));
  expect(codesIn(file)).toEqual([-1, ...codes]);
});

it('fails each line that was not written, and none after that', async () => {
  const file = join(folder, 'later', 'audit.log');
  const trail = fileAuditTrail(file);
  const outcomes = await Promise.allSettled([trail.record(line(1)), trail.record(line(2))]);
  for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: expect.any(AuditLogError) });
  mkdirSync(join(folder, 'later'));
  await trail.record(line(3));
  expect(codesIn(file)).toEqual([3]);
});

it('begins a line of its own behind a part of one, which a full disk or a kill has left', async () => {
  const file = join(folder, 'part.log');
  writeFileSync(file, '{"code":1}\n{"co');
  const trail = fileAuditTrail(file);
  await trail.record(line(2));
  await trail.record(line(3));
  expect(readFileSync(file, 'utf8')).toBe('{"code":1}\n{"co\n{"code":2}\n{"code":3}\n');
});
