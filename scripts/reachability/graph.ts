/**
 * Which declaration uses which. Nodes are modules, top-level declarations, functions at any level, and members that are
 * functions: of classes, of interfaces, of object literals (what a factory returns). An edge leads from the declaration
 * that encloses a use to the declaration that is used.
 *
 * Structural types need one thing more: who calls a member of an interface calls that of every object that was assigned to
 * it. So each assignment of an expression to another type adds edges from the members of that type to those of the
 * expression's own. Where this cannot be followed (`any`, a library, a computed key) a member counts as used: the graph may
 * miss dead code, and never calls live code dead.
 */
import { dirname, join } from 'node:path';
import ts from 'typescript';

export interface UseGraph {
  /** Edges by declaration. */
  readonly uses: ReadonlyMap<ts.Node, ReadonlySet<ts.Node>>;
  /** Names of members that a declaration uses of a value whose type is unknown. */
  readonly namesUsed: ReadonlyMap<ts.Node, ReadonlySet<string>>;
  /** Members that are functions, by name. */
  readonly members: ReadonlyMap<string, readonly ts.Node[]>;
  /** What a module exports, declared there or elsewhere. */
  readonly exportsOf: (file: ts.SourceFile) => readonly ts.Node[];
}

/** Types within types are followed so deep. */
const DEPTH_MAX = 6;

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

/** `root`: paths in texts count from here, or from the file they stand in. */
export function useGraph(program: ts.Program, root: string): UseGraph {
  const checker = program.getTypeChecker();
  const uses = new Map<ts.Node, Set<ts.Node>>();
  const namesUsed = new Map<ts.Node, Set<string>>();
  const members = new Map<string, ts.Node[]>();
  const linked = new Set<string>();
  const tracked = new Map<ts.Node, boolean>();

  const callable = (type: ts.Type): boolean => {
    const present = checker.getNonNullableType(type);
    return present.isUnion() ? present.types.some(callable) : present.getCallSignatures().length > 0;
  };

  const computeTracked = (node: ts.Node): boolean => {
    if (ts.isSourceFile(node) || ts.isFunctionDeclaration(node) || ts.isClassDeclaration(node)) return true;
    if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node) || ts.isEnumDeclaration(node)) return true;
    if (ts.isVariableDeclaration(node)) {
      return ts.isIdentifier(node.name) && (isTopLevel(node) || isFunctionExpression(node.initializer));
    }
    if (!isMember(node)) return false;
    const name = (node as ts.NamedDeclaration).name;
    if (name === undefined || ts.isComputedPropertyName(name)) return false;
    if (ts.isMethodDeclaration(node) || ts.isMethodSignature(node)) return true;
    if (ts.isGetAccessor(node) || ts.isSetAccessor(node)) return true;
    if (ts.isPropertyAssignment(node)) {
      return isFunctionExpression(node.initializer) || callable(checker.getTypeAtLocation(node.initializer));
    }
    if (ts.isShorthandPropertyAssignment(node)) return callable(checker.getTypeAtLocation(node.name));
    return callable(checker.getTypeAtLocation(node));
  };
  const isTracked = (node: ts.Node): boolean => {
    let answer = tracked.get(node);
    if (answer === undefined) {
      answer = computeTracked(node);
      tracked.set(node, answer);
    }
    return answer;
  };

  const add = (from: ts.Node, to: ts.Node): void => {
    if (from === to || !isTracked(to)) return;
    const present = uses.get(from);
    if (present === undefined) uses.set(from, new Set([to]));
    else present.add(to);
  };
  const addName = (from: ts.Node, name: string): void => {
    const present = namesUsed.get(from);
    if (present === undefined) namesUsed.set(from, new Set([name]));
    else present.add(name);
  };
  const resolved = (symbol: ts.Symbol): ts.Symbol =>
    symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  const addSymbol = (from: ts.Node, symbol: ts.Symbol): void => {
    for (const declaration of resolved(symbol).declarations ?? []) add(from, declaration);
  };
  const addProperty = (from: ts.Node, type: ts.Type, name: string): void => {
    const parts = type.isUnion() ? type.types : [type];
    for (const part of parts) {
      const property = checker.getPropertyOfType(checker.getNonNullableType(part), name);
      if (property !== undefined) addSymbol(from, property);
      else if (part.flags & (ts.TypeFlags.Any | ts.TypeFlags.Unknown)) addName(from, name);
    }
  };

  const isOurs = (symbol: ts.Symbol | undefined): boolean =>
    symbol?.declarations?.some((each) => !each.getSourceFile().isDeclarationFile) ?? false;

  /** Everything of a value that goes where it cannot be followed counts as used. */
  const escapes = (from: ts.Node, type: ts.Type, depth = 0): void => {
    if (depth > 3 || !(type.flags & (ts.TypeFlags.Object | ts.TypeFlags.UnionOrIntersection))) return;
    const key = `escape ${(type as unknown as { id: number }).id} ${from.getSourceFile().fileName}:${from.pos}`;
    if (linked.has(key)) return;
    linked.add(key);
    if (type.isUnion()) {
      for (const part of type.types) escapes(from, part, depth);
      return;
    }
    for (const property of checker.getPropertiesOfType(type)) {
      if (!isOurs(property)) continue;
      addSymbol(from, property);
      escapes(from, checker.getTypeOfSymbol(property), depth + 1);
    }
    for (const signature of [...type.getCallSignatures(), ...type.getConstructSignatures()]) {
      escapes(from, signature.getReturnType(), depth + 1);
    }
    for (const argument of typeArguments(type)) escapes(from, argument, depth + 1);
  };

  const typeArguments = (type: ts.Type): readonly ts.Type[] =>
    type.flags & ts.TypeFlags.Object && (type as ts.ObjectType).objectFlags & ts.ObjectFlags.Reference
      ? checker.getTypeArguments(type as ts.TypeReference)
      : [];

  /** A value of type `source` goes where `target` is expected. */
  const link = (from: ts.Node, source: ts.Type, target: ts.Type, depth = 0): void => {
    if (source === target || depth > DEPTH_MAX) return;
    if (target.flags & (ts.TypeFlags.Any | ts.TypeFlags.Unknown | ts.TypeFlags.NonPrimitive)) {
      escapes(from, source);
      return;
    }
    const followed = ts.TypeFlags.Object | ts.TypeFlags.UnionOrIntersection | ts.TypeFlags.TypeParameter;
    if (!(source.flags & followed) || !(target.flags & followed)) return;
    const key = `${(source as unknown as { id: number }).id} ${(target as unknown as { id: number }).id}`;
    if (linked.has(key)) return;
    linked.add(key);
    if (target.isUnion()) {
      for (const part of target.types) link(from, source, part, depth);
      return;
    }
    if (source.isUnion()) {
      for (const part of source.types) link(from, part, target, depth);
      return;
    }
    if (target.flags & ts.TypeFlags.TypeParameter) {
      const constraint = checker.getBaseConstraintOfType(target);
      if (constraint !== undefined && constraint !== target) link(from, source, constraint, depth + 1);
      return;
    }
    const sourceArguments = typeArguments(source);
    const targetArguments = typeArguments(target);
    for (const [index, argument] of sourceArguments.entries()) {
      const other = targetArguments[index];
      if (other !== undefined) link(from, argument, other, depth + 1);
    }
    if (checker.getIndexInfosOfType(target).length > 0) {
      const value = checker.getIndexInfosOfType(target)[0] as ts.IndexInfo;
      for (const property of checker.getPropertiesOfType(source)) {
        if (!isOurs(property)) continue;
        addSymbol(from, property);
        link(from, checker.getTypeOfSymbol(property), value.type, depth + 1);
      }
    }
    for (const property of checker.getPropertiesOfType(target)) {
      const own = checker.getPropertyOfType(source, property.name);
      if (own === undefined || own === property || !isOurs(own)) continue;
      const ours = (property.declarations ?? []).filter(
        (each) => !each.getSourceFile().isDeclarationFile && isTracked(each),
      );
      for (const given of own.declarations ?? []) {
        for (const wanted of ours) add(wanted, given);
        // A library may call it, or it is a property of a mapped type.
        if (ours.length === 0) add(from, given);
      }
      link(from, checker.getTypeOfSymbol(own), checker.getTypeOfSymbol(property), depth + 1);
    }
    linkSignatures(from, source.getCallSignatures(), target.getCallSignatures(), depth);
    linkSignatures(from, source.getConstructSignatures(), target.getConstructSignatures(), depth);
  };

  const linkSignatures = (
    from: ts.Node,
    sources: readonly ts.Signature[],
    targets: readonly ts.Signature[],
    depth: number,
  ): void => {
    for (const target of targets) {
      for (const source of sources) {
        link(from, source.getReturnType(), target.getReturnType(), depth + 1);
        for (const [index, parameter] of source.parameters.entries()) {
          const other = target.parameters[index];
          if (other === undefined) break;
          link(from, checker.getTypeOfSymbol(other), checker.getTypeOfSymbol(parameter), depth + 1);
        }
      }
    }
  };

  const moduleOf = (specifier: ts.Expression | undefined): ts.Node | undefined => {
    const symbol = specifier === undefined ? undefined : checker.getSymbolAtLocation(specifier);
    return symbol?.declarations?.[0];
  };
  const exportsOf = (file: ts.SourceFile): ts.Node[] => {
    const symbol = checker.getSymbolAtLocation(file);
    if (symbol === undefined) return [];
    return checker
      .getExportsOfModule(symbol)
      .flatMap((each) => resolved(each).declarations ?? [])
      .filter(isTracked);
  };

  /** A file that is named by its path runs as a whole, as a worker does. */
  const addNamedFile = (owner: ts.Node, text: string): void => {
    if (!text.endsWith('.ts') || text.includes('*')) return;
    for (const folder of [dirname(owner.getSourceFile().fileName), root]) {
      const source = program.getSourceFile(join(folder, text));
      if (source === undefined) continue;
      add(owner, source);
      for (const exported of exportsOf(source)) add(owner, exported);
    }
  };

  const visitExpression = (node: ts.Expression, owner: ts.Node): void => {
    const contextual = checker.getContextualType(node);
    if (contextual !== undefined) link(owner, checker.getTypeAtLocation(node), contextual);
  };

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
  const isExpressionPosition = (node: ts.Node): boolean => {
    const { parent } = node;
    if (ts.isPropertyAccessExpression(parent) || ts.isTypeNode(parent) || ts.isImportSpecifier(parent)) return false;
    if (ts.isIdentifier(node) && (parent as ts.NamedDeclaration).name === node) return false;
    return !ts.isBindingElement(parent) || parent.initializer === node;
  };

  const visit = (node: ts.Node, outer: ts.Node): void => {
    const owner = isTracked(node) ? node : outer;
    if (owner === node && isMember(node)) {
      const name = (node as ts.NamedDeclaration).name?.getText() ?? '';
      const present = members.get(name);
      if (present === undefined) members.set(name, [node]);
      else present.push(node);
    }
    if (ts.isImportDeclaration(node)) {
      const imported = moduleOf(node.moduleSpecifier);
      if (imported !== undefined && node.importClause?.isTypeOnly !== true) add(owner, imported);
      return;
    }
    if (ts.isExportDeclaration(node)) {
      const imported = moduleOf(node.moduleSpecifier);
      if (imported !== undefined && !node.isTypeOnly) add(owner, imported);
      return;
    }
    if (ts.isStringLiteral(node)) addNamedFile(owner, node.text);
    if (ts.isIdentifier(node) || ts.isPrivateIdentifier(node)) {
      const { parent } = node;
      if (ts.isShorthandPropertyAssignment(parent) && parent.name === node) {
        const value = checker.getShorthandAssignmentValueSymbol(parent);
        if (value !== undefined) addSymbol(owner, value);
        const type = checker.getTypeAtLocation(node);
        const contextual = checker.getContextualType(parent.parent);
        const wanted = contextual && checker.getPropertyOfType(contextual, node.text);
        if (wanted !== undefined) link(owner, type, checker.getTypeOfSymbol(wanted));
        return;
      }
      if ((parent as ts.NamedDeclaration).name !== node || ts.isPropertyAccessExpression(parent)) {
        const symbol = checker.getSymbolAtLocation(node);
        if (symbol !== undefined) addSymbol(owner, symbol);
        if (ts.isPropertyAccessExpression(parent) && parent.name === node) {
          if ((symbol?.declarations ?? []).length === 0) addName(owner, node.text);
        }
      }
    }
    if (ts.isElementAccessExpression(node)) {
      const type = checker.getTypeAtLocation(node.expression);
      if (ts.isStringLiteralLike(node.argumentExpression)) addProperty(owner, type, node.argumentExpression.text);
      else if (isOurs(type.symbol))
        for (const property of checker.getPropertiesOfType(type)) addSymbol(owner, property);
    }
    if (ts.isIndexedAccessTypeNode(node) && ts.isLiteralTypeNode(node.indexType)) {
      if (ts.isStringLiteral(node.indexType.literal)) {
        addProperty(owner, checker.getTypeAtLocation(node.objectType), node.indexType.literal.text);
      }
    }
    if (ts.isBindingElement(node) && ts.isObjectBindingPattern(node.parent) && node.dotDotDotToken === undefined) {
      const name = node.propertyName ?? node.name;
      if (ts.isIdentifier(name)) addProperty(owner, checker.getTypeAtLocation(node.parent), name.text);
    }
    if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.EqualsToken) {
      if (ts.isObjectLiteralExpression(node.left)) {
        for (const each of node.left.properties) addName(owner, each.name?.getText() ?? '');
      }
    }
    if (ts.isCallExpression(node) || ts.isNewExpression(node)) {
      const declaration = checker.getResolvedSignature(node)?.declaration;
      if (declaration === undefined) {
        for (const argument of node.arguments ?? []) escapes(owner, checker.getTypeAtLocation(argument));
      }
    }
    if (ts.isAsExpression(node) || ts.isSatisfiesExpression(node)) {
      const source = checker.getTypeAtLocation(node.expression);
      const target = checker.getTypeAtLocation(node.type);
      link(owner, source, target);
      link(owner, target, source);
    }
    if (ts.isClassDeclaration(node)) {
      const instance = checker.getTypeAtLocation(node);
      for (const clause of node.heritageClauses ?? []) {
        for (const each of clause.types) {
          const type = checker.getTypeAtLocation(each);
          if (type.flags & ts.TypeFlags.Any) escapes(node, instance);
          else link(node, instance, type);
        }
      }
    }
    if (CONTEXTUAL.has(node.kind) && isExpressionPosition(node)) visitExpression(node as ts.Expression, owner);
    ts.forEachChild(node, (child) => visit(child, owner));
  };

  for (const file of program.getSourceFiles()) if (!file.isDeclarationFile) visit(file, file);
  return { uses, namesUsed, members, exportsOf };
}
