/**
 * How far one piece of work walks through the code: files and folders that a beat, a tick, an eviction and a patch
 * enter. It counts what runs, not what is imported: the deployed handlers over the embedded engine
 * (bench/walk-process.ts).
 */
import { fileURLToPath } from 'node:url';
import { engineBinary, startEngine } from '../local/engine/engine.ts';
import { type Benchmark, readOptions } from './benchmark.ts';
import { adapterOf, folderOf, waysBack } from './entered-files.ts';
import { makeTables } from './tick.ts';
import { takeWalks } from './walk-process.ts';

const PROJECT = fileURLToPath(new URL('..', import.meta.url));

export const walks: Benchmark = {
  name: 'walks',
  about: 'files and folders that one beat, one tick of node-monitor, one eviction and one label patch enter',
  usage: '[--verbose]',
  async run(report, words) {
    const { verbose = false } = readOptions(words, { verbose: { type: 'boolean' } });
    const engine = await startEngine(engineBinary(PROJECT), undefined);
    try {
      const tables = await makeTables(engine, 'walks');
      for (const { name, files } of await takeWalks({ endpoint: engine.endpoint, tables })) {
        const byFolder = Map.groupBy(files, folderOf);
        report({
          walk: name,
          files: files.length,
          folders: byFolder.size,
          adapters: new Set(files.map(adapterOf).filter((adapter) => adapter !== undefined)).size,
          waysBack: waysBack(files).join(', ') || 'none',
        });
        if (!verbose) continue;
        for (const [folder, paths] of byFolder) {
          report({ walk: name, folder, entered: paths.map((path) => path.slice(folder.length + 1)).join(' ') });
        }
      }
    } finally {
      await engine.stop();
    }
  },
};
