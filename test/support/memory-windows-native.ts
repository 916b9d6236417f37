/** Makes the calls of `memory-windows.ts` what the agent loads in place of the native part of koffi. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, vi } from 'vitest';
import type * as MemoryWindows from './memory-windows.ts';

const MEMORY_WINDOWS = fileURLToPath(new URL('./memory-windows.ts', import.meta.url));

/**
 * For a whole test file, which must be one of `ALONE` in `vitest.config.ts`: the native part is loaded once per module.
 *
 * @returns the calls, and the directory of the program
 */
export function memoryWindows(): { readonly memory: typeof MemoryWindows; readonly program: string } {
  // The agent loads the same module.
  const memory = createRequire(import.meta.url)(MEMORY_WINDOWS) as typeof MemoryWindows;
  const program = mkdtempSync(join(tmpdir(), 'nodekeeper-windows-'));
  beforeAll(() => {
    mkdirSync(join(program, 'koffi.node'));
    const source = `module.exports = require(${JSON.stringify(MEMORY_WINDOWS)}).koffi;`;
    writeFileSync(join(program, 'koffi.node', 'index.js'), source);
    vi.stubEnv('NODEKEEPER_PROGRAM', program);
  });
  afterAll(() => {
    vi.unstubAllEnvs();
    rmSync(program, { recursive: true });
  });
  beforeEach(memory.resetWindows);
  return { memory, program };
}
