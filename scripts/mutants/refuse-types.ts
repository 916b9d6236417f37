/** Marks for Stryker the mutants that the compiler refuses, as `npm run check` does: no test has to detect them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Checker, type CheckResult, CheckStatus } from '@stryker-mutator/api/check';
import type { Mutant } from '@stryker-mutator/api/core';
import { declareClassPlugin, PluginKind } from '@stryker-mutator/api/plugin';
import ts from 'typescript';

/** What is read of a mutant; lines and columns count from 0. */
export type Change = Pick<Mutant, 'fileName' | 'replacement' | 'location'>;

class TypeChecker implements Checker {
  static readonly inject = [] as const;
  private readonly findRefusal = refusalsUnder(process.cwd());

  init(): Promise<void> {
    return Promise.resolve();
  }

  check(mutants: Mutant[]): Promise<Record<string, CheckResult>> {
    const results = mutants.map((mutant): [string, CheckResult] => {
      const reason = this.findRefusal(mutant);
      return [mutant.id, reason === undefined ? PASSED : { status: CheckStatus.CompileError, reason }];
    });
    return Promise.resolve(Object.fromEntries(results));
  }
}

const PASSED: CheckResult = { status: CheckStatus.Passed };

/** Says why the compiler refuses a change of one file; undefined: it does not, in that file. */
export function refusalsUnder(root: string): (change: Change) => string | undefined {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (path) => readFileSync(path, 'utf8'));
  const parsed = ts.parseJsonConfigFileContent({ ...config, include: [], files: [] }, ts.sys, root).options;
  // What a mutant leaves unused is no reason that a test need not detect it.
  const options = { ...parsed, noUnusedLocals: false, noUnusedParameters: false, allowUnreachableCode: true };
  const changed = { path: '', text: '', version: 0 };
  const readFile = (path: string) => (path === changed.path ? changed.text : ts.sys.readFile(path));
  const service = ts.createLanguageService({
    fileExists: ts.sys.fileExists,
    directoryExists: ts.sys.directoryExists,
    getDirectories: ts.sys.getDirectories,
    useCaseSensitiveFileNames: () => ts.sys.useCaseSensitiveFileNames,
    readFile,
    getCompilationSettings: () => options,
    getCurrentDirectory: () => root,
    getDefaultLibFileName: (settings) => ts.getDefaultLibFilePath(settings),
    getScriptFileNames: () => [changed.path],
    getScriptVersion: (path) => (path === changed.path ? `${path}#${changed.version}` : path),
    getScriptSnapshot: (path) => {
      const text = readFile(path);
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
    },
  });
  return ({ fileName, replacement, location: { start, end } }) => {
    const source = ts.createSourceFile(fileName, ts.sys.readFile(fileName) ?? '', ts.ScriptTarget.Latest);
    const offsetOf = (at: { line: number; column: number }) => source.getPositionOfLineAndCharacter(at.line, at.column);
    changed.path = fileName;
    changed.text = source.text.slice(0, offsetOf(start)) + replacement + source.text.slice(offsetOf(end));
    changed.version += 1;
    const found = [...service.getSyntacticDiagnostics(fileName), ...service.getSemanticDiagnostics(fileName)];
    const [first] = found.filter(({ category }) => category === ts.DiagnosticCategory.Error);
    return first === undefined ? undefined : ts.flattenDiagnosticMessageText(first.messageText, ' ');
  };
}

export const strykerPlugins = [declareClassPlugin(PluginKind.Checker, 'types', TypeChecker)];
