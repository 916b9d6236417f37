/** Alarms and dashboards find a metric by its name: names are distinct, and have a form that CloudWatch accepts. */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const FOLDER = join(import.meta.dirname, '../..');

it('each metric of the controllers has its own name', async () => {
  const files = globSync('{functions,shared}/**/{metrics,*-metrics}.ts', { cwd: FOLDER });
  expect(files.length).toBeGreaterThan(10);
  const names: string[] = [];
  for (const file of files) {
    const values = Object.values((await import(join(FOLDER, file))) as Record<string, unknown>);
    names.push(...values.filter((value) => typeof value === 'string'));
  }
  expect(names.filter((name) => !/^[a-z]+(_[a-z]+)+$/.test(name))).toEqual([]);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});
