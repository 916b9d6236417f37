import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { filesVersion } from './certificate.ts';

it('the version of the files changes also when they cannot be looked at any more', () => {
  const directory = mkdtempSync(join(tmpdir(), 'nodekeeper-certificate-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const files = { certificateFile: join(directory, 'tls.crt'), keyFile: join(directory, 'tls.key') };
  for (const file of Object.values(files)) writeFileSync(file, 'x');
  const whole = filesVersion(files);
  expect(filesVersion(files)).toBe(whole);
  rmSync(files.keyFile);
  const missing = filesVersion(files);
  // A loop of links stands for every fault that is not a missing file.
  symlinkSync(files.keyFile, files.keyFile);
  expect(new Set([whole, missing, filesVersion(files)]).size).toBe(3);
});
