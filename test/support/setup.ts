export { bundle as setup } from '../../scripts/bundle.js';
