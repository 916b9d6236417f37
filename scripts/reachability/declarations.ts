/** The declarations that the graph tracks, and what the type checker knows about their symbols. */
import ts from 'typescript';

const isFunctionExpression = (node: ts.Node | undefined): boolean =>
  node !== undefined && (ts.isArrowFunction(node) || ts.isFunctionExpression(node));

export const isMember = (node: ts.Node): boolean =>
  ts.isMethodDeclaration(node) ||
  ts.isMethodSignature(node) ||
  ts.isPropertySignature(node) ||
  ts.isPropertyDeclaration(node) ||
  ts.isPropertyAssignment(node) ||
  ts.isShorthandPropertyAssignment(node) ||
  ts.isGetAccessor(node) ||
  ts.isSetAccessor(node);

export const isTopLevel = (node: ts.Node): boolean => {
  if (ts.isVariableDeclaration(node)) return ts.isSourceFile(node.parent.parent.parent);
  return node.parent !== undefined && ts.isSourceFile(node.parent);
};

/** Whether a symbol is declared in our own files. */
export const isOurs = (symbol: ts.Symbol | undefined): boolean =>
  symbol?.declarations?.some((each) => !each.getSourceFile().isDeclarationFile) ?? false;

export class Declarations {
  readonly #checker: ts.TypeChecker;
  readonly #tracked = new Map<ts.Node, boolean>();

  constructor(checker: ts.TypeChecker) {
    this.#checker = checker;
  }

  /** Whether the declaration is a node of the graph. */
  isTracked(node: ts.Node): boolean {
    let answer = this.#tracked.get(node);
    if (answer === undefined) {
      answer = this.#computeTracked(node);
      this.#tracked.set(node, answer);
    }
    return answer;
  }

  /** The symbol behind an import or export alias. */
  resolved(symbol: ts.Symbol): ts.Symbol {
    return symbol.flags & ts.SymbolFlags.Alias ? this.#checker.getAliasedSymbol(symbol) : symbol;
  }

  moduleOf(specifier: ts.Expression | undefined): ts.Node | undefined {
    const symbol = specifier === undefined ? undefined : this.#checker.getSymbolAtLocation(specifier);
    return symbol?.declarations?.[0];
  }

  exportsOf(file: ts.SourceFile): ts.Node[] {
    const symbol = this.#checker.getSymbolAtLocation(file);
    if (symbol === undefined) return [];
    return this.#checker
      .getExportsOfModule(symbol)
      .flatMap((each) => this.resolved(each).declarations ?? [])
      .filter((each) => this.isTracked(each));
  }

  #computeTracked(node: ts.Node): boolean {
    if (ts.isSourceFile(node) || ts.isFunctionDeclaration(node) || ts.isClassDeclaration(node)) return true;
    if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node) || ts.isEnumDeclaration(node)) return true;
    if (ts.isVariableDeclaration(node)) {
      return ts.isIdentifier(node.name) && (isTopLevel(node) || isFunctionExpression(node.initializer));
    }
    return isMember(node) && this.#isFunctionMember(node);
  }

  #isFunctionMember(node: ts.Node): boolean {
    const name = (node as ts.NamedDeclaration).name;
    if (name === undefined || ts.isComputedPropertyName(name)) return false;
    if (ts.isMethodDeclaration(node) || ts.isMethodSignature(node)) return true;
    if (ts.isGetAccessor(node) || ts.isSetAccessor(node)) return true;
    const typeAt = (at: ts.Node): ts.Type => this.#checker.getTypeAtLocation(at);
    if (ts.isPropertyAssignment(node)) {
      return isFunctionExpression(node.initializer) || this.#isCallable(typeAt(node.initializer));
    }
    return this.#isCallable(typeAt(ts.isShorthandPropertyAssignment(node) ? node.name : node));
  }

  #isCallable(type: ts.Type): boolean {
    const present = this.#checker.getNonNullableType(type);
    if (present.isUnion()) return present.types.some((each) => this.#isCallable(each));
    return present.getCallSignatures().length > 0;
  }
}
