/** Runs the simulator's command in this process, as a person would, and keeps what it printed. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { simulate } from '../../simulation/simulate.ts';

export interface Ran {
  readonly exitCode: number;
  readonly output: readonly string[];
  readonly errors: readonly string[];
}

export async function runSimulate(...args: readonly string[]): Promise<Ran> {
  const output: string[] = [];
  const errors: string[] = [];
  const exitCode = await simulate(args, {
    print: (line) => output.push(line),
    printError: (line) => errors.push(line),
    environment: process.env,
  });
  return { exitCode, output, errors };
}

/** Calls `use` with files of these names and texts, in a folder that is deleted afterwards. */
export async function withFiles<T>(
  texts: Readonly<Record<string, string>>,
  use: (paths: Readonly<Record<string, string>>) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'nodekeeper-scenario-'));
  try {
    const paths = Object.fromEntries(
      Object.entries(texts).map(([name, text]) => {
        const path = join(folder, name);
        writeFileSync(path, text);
        return [name, path];
      }),
    );
    return await use(paths);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A scenario with this `spec`: YAML indented by two. */
export const scenarioText = (spec: string): string =>
  `apiVersion: nodekeeper.dev/v1alpha1\nkind: Scenario\nmetadata: {name: short}\nspec:\n${spec}`;

/** Runs one scenario on the memory store. */
export const runStory = (spec: string, ...args: readonly string[]): Promise<Ran> =>
  withFiles({ 'story.yaml': scenarioText(spec) }, (paths) =>
    runSimulate(paths['story.yaml']!, '--store', 'memory', ...args),
  );
