import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { ACCEPTED, accepts } from './accepted.ts';
import { AREAS, sourcesOf } from './areas.ts';
import { mutantsOf } from './mutators.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

it('each accepted mutant still exists: an entry of changed code leaves the list', () => {
  const sources = Object.keys(AREAS).flatMap((area) => sourcesOf(ROOT, area));
  const stale = ACCEPTED.filter((entry) => {
    const files = sources.filter((file) => file === entry.file || file.endsWith(`/${entry.file}`));
    return !files.some((file) =>
      mutantsOf(file, readFileSync(join(ROOT, file), 'utf8')).some((mutant) => accepts(entry, mutant)),
    );
  });
  expect(stale).toEqual([]);
});

it('says why each is accepted', () => {
  expect(ACCEPTED.filter(({ reason }) => reason.length < 20)).toEqual([]);
});

it('no file belongs to two areas', () => {
  const files = Object.keys(AREAS).flatMap((area) => sourcesOf(ROOT, area));
  expect(new Set(files).size).toBe(files.length);
});
