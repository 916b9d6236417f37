/** `nodekeeper-agent install` and `uninstall`, on Windows. */
import { parseArgs } from 'node:util';
import { InstallError, install, installPaths, uninstall } from '../adapters/windows/installation.ts';
import { configFileOf } from '../rules/windows-install.ts';

export const INSTALL_USAGE = `Usage: nodekeeper-agent install --endpoint URL --bootstrap-token-file FILE
         [--certificate-authority FILE] [--cluster-id ID] [--node-name NAME] [--runtime none|exec]
         [--update-key FILE] [--depends-on SERVICE[,SERVICE…]] [--keep-data] [--no-start]
       nodekeeper-agent uninstall [--purge]

Installs the agent as the service nodekeeper-agent, from the files beside this one.
--depends-on: services that have to run, and that stop after this one when the machine shuts down. uninstall keeps key
and configuration, --purge removes them, and install --keep-data uses them again. --update-key: the public key that
signs releases of the agent; with it the agent updates itself.
`;

export interface InstallIo {
  readonly print: (line: string) => void;
  readonly printError: (line: string) => void;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** What is wrong with a configuration; undefined if nothing is. */
  readonly faultOf: (configFile: string) => string | undefined;
}

/** Returns the exit code: 2 for wrong arguments, 1 for a refused installation. */
export async function installCommand(
  command: 'install' | 'uninstall',
  args: readonly string[],
  io: InstallIo,
): Promise<number> {
  const paths = installPaths(io.environment);
  try {
    if (command === 'install') {
      const { start, ...request } = installArguments(args);
      const { isKept } = await install(paths, { ...request, start, faultOf: io.faultOf });
      const kept = isKept ? `; kept ${configFileOf(paths)}` : '';
      io.print(`installed: ${paths.program}, ${paths.data}${kept}${start ? '; the service runs' : ''}`);
    } else {
      const { values } = parseArgs({ args: [...args], options: { purge: { type: 'boolean', default: false } } });
      await uninstall(paths, values);
      io.print(values.purge ? 'removed' : `removed; kept ${paths.data}, --purge removes it`);
    }
    return 0;
  } catch (error) {
    io.printError(`nodekeeper-agent: ${error instanceof Error ? error.message : String(error)}`);
    if (error instanceof InstallError) return 1;
    io.printError(INSTALL_USAGE);
    return 2;
  }
}

function installArguments(args: readonly string[]) {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    args: [...args],
    options: {
      endpoint: text,
      'bootstrap-token-file': text,
      'certificate-authority': text,
      'cluster-id': text,
      'node-name': text,
      runtime: { ...text, default: 'exec' },
      'update-key': text,
      'depends-on': text,
      'keep-data': { type: 'boolean', default: false },
      'no-start': { type: 'boolean', default: false },
    },
  });
  const { endpoint, 'bootstrap-token-file': bootstrapTokenFile, runtime } = values;
  if (!values['keep-data']) {
    if (endpoint === undefined) throw new Error('--endpoint is needed');
    if (bootstrapTokenFile === undefined) throw new Error('--bootstrap-token-file is needed');
  }
  if (runtime !== 'none' && runtime !== 'exec') throw new Error(`--runtime has to be none or exec; found ${runtime}`);
  return {
    endpoint,
    bootstrapTokenFile,
    authorityFile: values['certificate-authority'],
    updateKeyFile: values['update-key'],
    clusterId: values['cluster-id'],
    nodeName: values['node-name'],
    runtime,
    dependencies: values['depends-on']?.split(',').filter(Boolean) ?? [],
    keepsData: values['keep-data'],
    start: !values['no-start'],
  };
}
