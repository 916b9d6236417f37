/** Set-up file of a reach run: writes which functions a test file reached, one JSON file for each. */
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { NOTE } from './probes.ts';

const reached = new Set<string>();
const noteReached = (file: string, position: number) => void reached.add(`${file}:${position}`);
Object.assign(globalThis, { [NOTE]: noteReached });

afterAll(() => {
  const test = expect.getState().testPath;
  const directory = process.env['MUTANTS_REACHED_DIRECTORY'];
  if (directory === undefined || test === undefined) return;
  writeFileSync(join(directory, `${randomUUID()}.json`), JSON.stringify({ test, reached: [...reached] }));
});
