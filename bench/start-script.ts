import { readFileSync } from 'node:fs';

/** Variables and flags of a script of package.json: a benchmark measures what it runs. */
export function startScript(name: 'start' | 'start:aws'): {
  readonly variables: Readonly<Record<string, string>>;
  readonly flags: readonly string[];
} {
  const { scripts } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    scripts: Record<typeof name, string>;
  };
  const words = scripts[name].split(' ');
  const variables = words.slice(0, words.indexOf('node')).map((word): [string, string] => {
    const [variable = '', ...value] = word.split('=');
    return [variable, value.join('=')];
  });
  const isOfNode = (word: string): boolean => word.startsWith('--') && word !== '--demo';
  return { variables: Object.fromEntries(variables), flags: words.filter(isOfNode) };
}
