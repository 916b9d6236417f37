import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

it('examines the prose of the whole tree', () => {
  const program = fileURLToPath(new URL('check.ts', import.meta.url));
  const { stdout } = spawnSync(process.execPath, [program], { encoding: 'utf8', timeout: 60_000 });
  const [, lines, files] = /^wording: (\d+) lines of prose in (\d+) files/m.exec(stdout) ?? [];
  expect(Number(lines)).toBeGreaterThan(10_000);
  expect(Number(files)).toBeGreaterThan(500);
});
