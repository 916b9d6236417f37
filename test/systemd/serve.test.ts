/** `nodekeeper serve --install` under a real systemd, booted in namespaces of its own (boot.sh). */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BOOT_MS, boot, missing, resultsOf, why } from './boot.ts';

describe.skipIf(missing !== undefined)(`serve under systemd${why}`, () => {
  let directory: string;
  const read = (step: string): Record<string, unknown> => resultsOf(directory, step);

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'nodekeeper-systemd-'));
    mkdirSync(join(directory, 'dist'));
    writeFileSync(join(directory, 'dist/empty'), '');
    await boot('serve-story.ts', directory);
  }, BOOT_MS + 10_000);
  afterAll(() => rmSync(directory, { recursive: true }));

  it('is installed twice: active, enabled, ready, under a user of its own, with small exposure', () => {
    const installed = read('installed');
    expect(installed).toMatchObject({
      again: { exitCode: 0 },
      active: 'active',
      enabled: 'enabled',
      status: 'serves (https://127.0.0.1:6443)',
      mode: 0o700,
      ready: { status: 200 },
      created: 201,
    });
    expect(installed['owner']).toBeGreaterThan(60_000);
    expect(Number(/: ([\d.]+) /.exec(String(installed['security']))?.[1])).toBeLessThanOrEqual(2);
  });

  it('is started again by the watchdog when it stands still, and keeps its data', () => {
    expect(read('watchdog')).toEqual({ kept: 200 });
  });

  it('is backed up and restored by root', () => {
    expect(read('restored')).toMatchObject({
      backup: { exitCode: 0 },
      after: 201,
      refused: 1,
      check: { exitCode: 0 },
      restore: { exitCode: 0 },
      started: 0,
      found: { kept: 200, after: 404 },
    });
  });

  it('keeps the running service when another one cannot start in its place', () => {
    expect(read('bad')).toMatchObject({
      exitCode: 1,
      output: expect.stringMatching(/^nodekeeper serve: systemctl restart .* failed.*The previous unit is restored/),
      isSame: true,
      active: 'active',
      kept: 200,
    });
  });

  it('is removed, and keeps its data', () => {
    expect(read('removed')).toMatchObject({
      removed: { exitCode: 0 },
      again: { exitCode: 0, output: 'nodekeeper.service is not installed' },
      unit: false,
      load: 'not-found',
      data: true,
    });
  });
});
