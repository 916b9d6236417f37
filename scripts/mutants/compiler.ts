/** Would the compiler refuse a mutant? Then `npm run check` detects it, and no test has to. */
import { join } from 'node:path';
import ts from 'typescript';
import { apply, type Mutant } from './mutators.ts';

export class Compiler {
  readonly #root: string;
  readonly #options: ts.CompilerOptions;
  readonly #host: ts.CompilerHost;
  #program: ts.Program | undefined;
  #changed: { readonly path: string; readonly text: string } | undefined;
  readonly #sources = new Map<string, ts.SourceFile | undefined>();

  constructor(root: string) {
    this.#root = root;
    const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile);
    const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, root);
    // A value that is no longer used is what many mutants leave behind: that is style, not detection.
    this.#options = { ...options, noUnusedLocals: false, noUnusedParameters: false };
    const host = ts.createCompilerHost(this.#options);
    this.#host = {
      ...host,
      getCurrentDirectory: () => root,
      getSourceFile: (path, version) => {
        if (path === this.#changed?.path) return ts.createSourceFile(path, this.#changed.text, version, true);
        if (!this.#sources.has(path)) this.#sources.set(path, host.getSourceFile(path, version));
        return this.#sources.get(path);
      },
    };
  }

  refuses(mutant: Mutant): boolean {
    const path = join(this.#root, mutant.file);
    this.#changed = { path, text: apply(ts.sys.readFile(path) ?? '', mutant) };
    this.#program = ts.createProgram([path], this.#options, this.#host, this.#program);
    const file = this.#program.getSourceFile(path);
    return [...this.#program.getSyntacticDiagnostics(file), ...this.#program.getSemanticDiagnostics(file)].length > 0;
  }
}
