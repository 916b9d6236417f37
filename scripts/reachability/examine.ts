/** Code that no program runs: reached from tests only, or from nothing. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type ts from 'typescript';
import { useGraph } from './graph.ts';
import type { Layout } from './layout.ts';
import { openProgram, sourceFiles } from './program.ts';
import { reachedFrom, symbolsOf } from './sweep.ts';

/** A symbol that may stay unreached. */
export interface Exception {
  /** As in a finding, or a folder or file that ends in `/**` or `#*`. */
  readonly symbol: string;
  readonly reason: string;
}

export interface Finding {
  /** `path#name`, of a member `path#owner.name`. */
  readonly symbol: string;
  readonly line: number;
  /** Tests and tools that contain the name; a hint, not a proof. */
  readonly namedIn: readonly string[];
}

export interface Examination {
  readonly files: number;
  /** Exported declarations, and members that are functions. */
  readonly symbols: number;
  readonly findings: readonly Finding[];
  /** Exceptions that match no unreached symbol. */
  readonly stale: readonly Exception[];
  readonly excepted: number;
}

const matches = ({ symbol }: Exception, found: string): boolean =>
  symbol === found || (/(\/\*\*|#\*)$/.test(symbol) && found.startsWith(symbol.replace(/\*+$/, '')));

/** @throws Error when an entry names no file. */
export function examine(root: string, layout: Layout, exceptions: readonly Exception[]): Examination {
  const files = sourceFiles(root, [...layout.product, ...layout.tools]);
  const program = openProgram(root, files);
  const graph = useGraph(program, root);
  const isIn = (folders: readonly string[], path: string): boolean =>
    folders.some((folder) => path.startsWith(`${folder}/`));
  const toolFiles = new Set(files.filter((file) => isIn(layout.tools, file)).map((file) => join(root, file)));

  const entries = entryFiles(root, program, layout.entries);
  const fromProduct = reachedFrom(graph, entries, (file) => !toolFiles.has(file.fileName));
  const fromAll = reachedFrom(graph, [...entries, ...entryFiles(root, program, layout.toolEntries)], () => true);

  const unreached: Omit<Finding, 'namedIn'>[] = [];
  let symbols = 0;
  for (const file of files) {
    const reached = isIn([...layout.tools, ...layout.forTools], file) ? fromAll : fromProduct;
    const source = program.getSourceFile(join(root, file)) as ts.SourceFile;
    for (const { id, line, isReached } of symbolsOf(graph, source, reached, root)) {
      symbols += 1;
      if (!isReached) unreached.push({ symbol: id, line });
    }
  }
  const findings = unreached.filter(({ symbol }) => !exceptions.some((each) => matches(each, symbol)));
  return {
    files: files.length,
    symbols,
    findings: withNames(root, layout, findings),
    stale: exceptions.filter((each) => !unreached.some(({ symbol }) => matches(each, symbol))),
    excepted: unreached.length - findings.length,
  };
}

function entryFiles(root: string, program: ts.Program, globs: readonly string[]): ts.SourceFile[] {
  return globs.flatMap((glob) => {
    const found = globSync(glob, { cwd: root }).map((file) => program.getSourceFile(join(root, file)));
    if (found.length === 0) throw new Error(`no program matches the entry ${glob}`);
    return found.filter((file) => file !== undefined);
  });
}

/** Files shown for one finding. */
const NAMED_IN_MAX = 3;

function withNames(root: string, layout: Layout, findings: readonly Omit<Finding, 'namedIn'>[]): Finding[] {
  if (findings.length === 0) return [];
  const others = globSync(['test/**/*.ts', `{${[...layout.product, ...layout.tools].join(',')}}/**/*.ts`], {
    cwd: root,
  })
    .filter(
      (file) =>
        file.endsWith('.test.ts') ||
        file.startsWith('test/') ||
        layout.tools.some((tool) => file.startsWith(`${tool}/`)),
    )
    .map((file) => ({ file, text: readFileSync(join(root, file), 'utf8') }));
  return findings.map((finding) => {
    const word = new RegExp(`\\b${finding.symbol.split(/[#.]/).at(-1)}\\b`);
    const namedIn = others.filter(({ file, text }) => !finding.symbol.startsWith(`${file}#`) && word.test(text));
    return { ...finding, namedIn: namedIn.slice(0, NAMED_IN_MAX).map(({ file }) => file) };
  });
}
