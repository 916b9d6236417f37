/**
 * The program that is examined: our own files alone. Libraries stay unresolved, which makes it fast; what is passed to
 * one counts as used by it.
 */
import { existsSync, globSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

/** Files of the layers, without tests. Paths from `root`. */
export const sourceFiles = (root: string, layers: readonly string[]): string[] =>
  layers
    .flatMap((layer) => globSync(`${layer}/**/*.ts`, { cwd: root }))
    .filter((file) => !file.endsWith('.test.ts') && !file.includes('node_modules'))
    .sort();

export function openProgram(root: string, files: readonly string[]): ts.Program {
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2024,
    lib: ['lib.es2024.d.ts'],
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    types: ['node'],
    typeRoots: [fileURLToPath(new URL('../../node_modules/@types', import.meta.url))],
    noEmit: true,
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
  };
  const host = ts.createCompilerHost(options);
  host.resolveModuleNameLiterals = (literals, containingFile) =>
    literals.map(({ text }) => {
      const path = join(dirname(containingFile), text);
      if (!text.startsWith('.') || !text.endsWith('.ts') || !existsSync(path)) return { resolvedModule: undefined };
      return { resolvedModule: { resolvedFileName: path, extension: ts.Extension.Ts } };
    });
  return ts.createProgram(
    files.map((file) => join(root, file)),
    options,
    host,
  );
}
