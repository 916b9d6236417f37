/**
 * Which declaration uses which. Nodes are modules, top-level declarations, functions at any level, and members that are
 * functions: of classes, of interfaces, of object literals (such as the result of a factory). An edge leads from the
 * declaration that encloses a use to the declaration that is used.
 *
 * Structural types need more: an assignment to another type adds edges from the members of that type to those of the
 * assigned value (type-links.ts). Where a value cannot be followed (`any`, a library, a computed key) its members count
 * as used: the graph may miss dead code, and never reports live code as dead.
 */
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { Declarations, isMember, isOurs } from './declarations.ts';
import { Edges } from './edges.ts';
import { TypeLinks } from './type-links.ts';

export interface UseGraph {
  /** Edges by declaration. */
  readonly uses: ReadonlyMap<ts.Node, ReadonlySet<ts.Node>>;
  /** Names of members that a declaration reads from a value of unknown type. */
  readonly namesUsed: ReadonlyMap<ts.Node, ReadonlySet<string>>;
  /** Members that are functions, by name. */
  readonly members: ReadonlyMap<string, readonly ts.Node[]>;
  /** The exports of a module, declared there or elsewhere. */
  readonly exportsOf: (file: ts.SourceFile) => readonly ts.Node[];
}

/** `root`: base folder of paths in texts, besides the folder of the file itself. */
export function useGraph(program: ts.Program, root: string): UseGraph {
  const visitor = new UseVisitor(program, root);
  for (const file of program.getSourceFiles()) if (!file.isDeclarationFile) visitor.visit(file, file);
  const { edges, members, declarations } = visitor;
  const { uses, namesUsed } = edges;
  return { uses, namesUsed, members, exportsOf: (file) => declarations.exportsOf(file) };
}

/** Expressions that have a contextual type when they are assigned or passed. */
const CONTEXTUAL = new Set([
  ts.SyntaxKind.ObjectLiteralExpression,
  ts.SyntaxKind.Identifier,
  ts.SyntaxKind.CallExpression,
  ts.SyntaxKind.NewExpression,
  ts.SyntaxKind.PropertyAccessExpression,
  ts.SyntaxKind.ElementAccessExpression,
  ts.SyntaxKind.AwaitExpression,
  ts.SyntaxKind.ArrowFunction,
  ts.SyntaxKind.FunctionExpression,
  ts.SyntaxKind.ThisKeyword,
  ts.SyntaxKind.ArrayLiteralExpression,
]);

function isExpressionPosition(node: ts.Node): boolean {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent) || ts.isTypeNode(parent) || ts.isImportSpecifier(parent)) return false;
  if (ts.isIdentifier(node) && (parent as ts.NamedDeclaration).name === node) return false;
  return !ts.isBindingElement(parent) || parent.initializer === node;
}

class UseVisitor {
  readonly edges: Edges;
  readonly members = new Map<string, ts.Node[]>();
  readonly declarations: Declarations;
  readonly #program: ts.Program;
  readonly #root: string;
  readonly #checker: ts.TypeChecker;
  readonly #links: TypeLinks;

  constructor(program: ts.Program, root: string) {
    this.#program = program;
    this.#root = root;
    this.#checker = program.getTypeChecker();
    this.declarations = new Declarations(this.#checker);
    this.edges = new Edges(this.#checker, this.declarations);
    this.#links = new TypeLinks(this.#checker, this.declarations, this.edges);
  }

  /** `outer`: the declaration that encloses the node. */
  visit(node: ts.Node, outer: ts.Node): void {
    const owner = this.declarations.isTracked(node) ? node : outer;
    if (owner === node && isMember(node)) this.#addMember(node);
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) {
      this.#visitModule(node, owner);
      return;
    }
    if (ts.isShorthandPropertyAssignment(node.parent ?? node) && this.#visitShorthand(node, owner)) return;
    if (ts.isStringLiteral(node)) this.#addNamedFile(owner, node.text);
    if (ts.isIdentifier(node) || ts.isPrivateIdentifier(node)) this.#visitName(node, owner);
    this.#visitMemberAccess(node, owner);
    this.#visitAssignment(node, owner);
    if (ts.isClassDeclaration(node)) this.#visitClass(node);
    ts.forEachChild(node, (child) => this.visit(child, owner));
  }

  #addMember(node: ts.Node): void {
    const name = (node as ts.NamedDeclaration).name?.getText() ?? '';
    const present = this.members.get(name);
    if (present === undefined) this.members.set(name, [node]);
    else present.push(node);
  }

  #visitModule(node: ts.ImportDeclaration | ts.ExportDeclaration, owner: ts.Node): void {
    const imported = this.declarations.moduleOf(node.moduleSpecifier);
    const isTypeOnly = ts.isImportDeclaration(node) ? node.importClause?.isTypeOnly === true : node.isTypeOnly;
    if (imported !== undefined && !isTypeOnly) this.edges.add(owner, imported);
  }

  /** A file named by its path runs as a whole, for example as a worker. */
  #addNamedFile(owner: ts.Node, text: string): void {
    if (!text.endsWith('.ts') || text.includes('*')) return;
    for (const folder of [dirname(owner.getSourceFile().fileName), this.#root]) {
      const source = this.#program.getSourceFile(join(folder, text));
      if (source === undefined) continue;
      this.edges.add(owner, source);
      for (const exported of this.declarations.exportsOf(source)) this.edges.add(owner, exported);
    }
  }

  /** `{ name }`: uses the variable, and assigns it to a member. True when the node is such a name. */
  #visitShorthand(node: ts.Node, owner: ts.Node): boolean {
    const { parent } = node;
    if (!ts.isIdentifier(node) || !ts.isShorthandPropertyAssignment(parent) || parent.name !== node) return false;
    const value = this.#checker.getShorthandAssignmentValueSymbol(parent);
    if (value !== undefined) this.edges.addSymbol(owner, value);
    const contextual = this.#checker.getContextualType(parent.parent);
    const member = contextual && this.#checker.getPropertyOfType(contextual, node.text);
    if (member !== undefined) {
      this.#links.link(owner, this.#checker.getTypeAtLocation(node), this.#checker.getTypeOfSymbol(member));
    }
    return true;
  }

  #visitName(node: ts.Identifier | ts.PrivateIdentifier, owner: ts.Node): void {
    const { parent } = node;
    const isAccess = ts.isPropertyAccessExpression(parent);
    if ((parent as ts.NamedDeclaration).name === node && !isAccess) return;
    const symbol = this.#checker.getSymbolAtLocation(node);
    if (symbol !== undefined) this.edges.addSymbol(owner, symbol);
    const isUnknown = (symbol?.declarations ?? []).length === 0;
    if (isAccess && parent.name === node && isUnknown) this.edges.addName(owner, node.text);
  }

  /** Members by key: `a['b']`, `A['b']`, `{ b } = a`, `({ b: c } = a)`. */
  #visitMemberAccess(node: ts.Node, owner: ts.Node): void {
    const typeAt = (at: ts.Node): ts.Type => this.#checker.getTypeAtLocation(at);
    if (ts.isElementAccessExpression(node)) {
      const type = typeAt(node.expression);
      const key = node.argumentExpression;
      if (ts.isStringLiteralLike(key)) this.edges.addProperty(owner, type, key.text);
      else if (isOurs(type.symbol)) {
        for (const property of this.#checker.getPropertiesOfType(type)) this.edges.addSymbol(owner, property);
      }
    }
    if (ts.isIndexedAccessTypeNode(node) && ts.isLiteralTypeNode(node.indexType)) {
      const { literal } = node.indexType;
      if (ts.isStringLiteral(literal)) this.edges.addProperty(owner, typeAt(node.objectType), literal.text);
    }
    if (ts.isBindingElement(node) && ts.isObjectBindingPattern(node.parent) && node.dotDotDotToken === undefined) {
      const name = node.propertyName ?? node.name;
      if (ts.isIdentifier(name)) this.edges.addProperty(owner, typeAt(node.parent), name.text);
    }
    if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.EqualsToken) {
      if (!ts.isObjectLiteralExpression(node.left)) return;
      for (const each of node.left.properties) this.edges.addName(owner, each.name?.getText() ?? '');
    }
  }

  /** Values that get another type: arguments, assertions, and expressions with a contextual type. */
  #visitAssignment(node: ts.Node, owner: ts.Node): void {
    const typeAt = (at: ts.Node): ts.Type => this.#checker.getTypeAtLocation(at);
    if (ts.isCallExpression(node) || ts.isNewExpression(node)) {
      if (this.#checker.getResolvedSignature(node)?.declaration === undefined) {
        for (const argument of node.arguments ?? []) this.#links.escape(owner, typeAt(argument));
      }
    }
    if (ts.isAsExpression(node) || ts.isSatisfiesExpression(node)) {
      const source = typeAt(node.expression);
      const target = typeAt(node.type);
      this.#links.link(owner, source, target);
      this.#links.link(owner, target, source);
    }
    if (CONTEXTUAL.has(node.kind) && isExpressionPosition(node)) {
      const contextual = this.#checker.getContextualType(node as ts.Expression);
      if (contextual !== undefined) this.#links.link(owner, typeAt(node), contextual);
    }
  }

  #visitClass(node: ts.ClassDeclaration): void {
    const instance = this.#checker.getTypeAtLocation(node);
    for (const clause of node.heritageClauses ?? []) {
      for (const each of clause.types) {
        const type = this.#checker.getTypeAtLocation(each);
        if (type.flags & ts.TypeFlags.Any) this.#links.escape(node, instance);
        else this.#links.link(node, instance, type);
      }
    }
  }
}
