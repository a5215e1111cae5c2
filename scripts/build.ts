import { bundle } from './bundle.js';

await bundle();
