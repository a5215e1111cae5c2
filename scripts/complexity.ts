import { parseAst } from 'rolldown/parseAst';
import { isRecord } from '../src/shared/json.js';

export interface FunctionComplexity {
  readonly name: string;
  readonly line: number;
  readonly complexity: number;
}

type SyntaxNode = Record<string, unknown> & { readonly type: string; readonly start: number };

const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);
/** What adds a path through a function, as in the rule `complexity` of ESLint. */
const BRANCHES = new Set([
  ...['IfStatement', 'ConditionalExpression', 'LogicalExpression', 'CatchClause', 'AssignmentPattern'],
  ...['ForStatement', 'ForInStatement', 'ForOfStatement', 'WhileStatement', 'DoWhileStatement'],
]);
const LOGICAL_ASSIGNMENTS = ['&&=', '||=', '??='];

/** Returns the cyclomatic complexity of each function of a TypeScript file. A function within another one counts for itself. */
export function measureComplexity(text: string): FunctionComplexity[] {
  const found: FunctionComplexity[] = [];
  const measure = (node: SyntaxNode, names: readonly string[]): number => {
    const name = nameOf(node);
    const path = name === undefined ? names : [...names, name];
    const branches = listChildren(node).reduce((sum, child) => sum + measure(child, path), 0);
    if (!FUNCTIONS.has(node.type)) return branches + (isBranch(node) ? 1 : 0);
    const line = text.slice(0, node.start).split('\n').length;
    found.push({ name: path.join('.') || '(anonymous)', line, complexity: branches + 1 });
    return 0;
  };
  const program: unknown = parseAst(text, { lang: 'ts' });
  if (isSyntaxNode(program)) measure(program, []);
  return found;
}

function isBranch({ type, test, optional, operator }: SyntaxNode): boolean {
  if (type === 'SwitchCase') return Boolean(test);
  if (type === 'MemberExpression' || type === 'CallExpression') return optional === true;
  return BRANCHES.has(type) || (type === 'AssignmentExpression' && LOGICAL_ASSIGNMENTS.includes(String(operator)));
}

/** The name that a node gives to what is in it. */
function nameOf({ type, id, key }: SyntaxNode): string | undefined {
  if (/^(?:FunctionDeclaration|FunctionExpression|ClassDeclaration|VariableDeclarator)$/.test(type)) return textOf(id);
  return /^(?:MethodDefinition|PropertyDefinition|Property)$/.test(type) ? textOf(key) : undefined;
}

function textOf(name: unknown): string | undefined {
  if (!isSyntaxNode(name) || typeof name.name !== 'string') return undefined;
  return name.type === 'PrivateIdentifier' ? `#${name.name}` : name.name;
}

function listChildren(node: SyntaxNode): SyntaxNode[] {
  return Object.values(node).flat().filter(isSyntaxNode);
}

function isSyntaxNode(value: unknown): value is SyntaxNode {
  return isRecord(value) && typeof value.type === 'string' && typeof value.start === 'number';
}
