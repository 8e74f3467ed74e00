//! Roots of real polynomials: where they are, and whether all lie within a circle.
//!
//! Only the four operations and square roots, so that every machine gets the same digits.

/// A polynomial with a nonzero leading coefficient.
#[derive(Clone, PartialEq, Debug)]
pub struct Polynomial {
    /// From the constant term upwards.
    coefficients: Vec<f64>,
}

/// A complex number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Complex {
    /// Real part.
    pub re: f64,
    /// Imaginary part.
    pub im: f64,
}

impl Complex {
    fn plus(self, o: Complex) -> Complex {
        Complex { re: self.re + o.re, im: self.im + o.im }
    }
    fn minus(self, o: Complex) -> Complex {
        Complex { re: self.re - o.re, im: self.im - o.im }
    }
    fn times(self, o: Complex) -> Complex {
        Complex { re: self.re * o.re - self.im * o.im, im: self.re * o.im + self.im * o.re }
    }
    fn over(self, o: Complex) -> Complex {
        let size = o.re * o.re + o.im * o.im;
        let turned = self.times(Complex { re: o.re, im: -o.im });
        Complex { re: turned.re / size, im: turned.im / size }
    }
    /// Its distance from 0.
    pub fn modulus(self) -> f64 {
        (self.re * self.re + self.im * self.im).sqrt()
    }
}

impl Polynomial {
    /// From its coefficients, the constant term first.
    pub fn new(mut coefficients: Vec<f64>) -> Polynomial {
        while coefficients.len() > 1 && coefficients.last() == Some(&0.0) {
            coefficients.pop();
        }
        Polynomial { coefficients }
    }

    fn at(&self, z: Complex) -> Complex {
        let start = Complex { re: 0.0, im: 0.0 };
        let step = |sum: Complex, c: &f64| sum.times(z).plus(Complex { re: *c, im: 0.0 });
        self.coefficients.iter().rev().fold(start, step)
    }

    /// All roots, the largest real part first, of a pair the positive imaginary part first (Durand and Kerner's
    /// iteration).
    pub fn roots(&self) -> Vec<Complex> {
        let degree = self.coefficients.len() - 1;
        let leading = Complex { re: self.coefficients[degree], im: 0.0 };
        let seed = Complex { re: 0.4, im: 0.9 };
        let mut roots = vec![seed];
        while roots.len() < degree {
            roots.push(roots[roots.len() - 1].times(seed));
        }
        roots.truncate(degree);
        for _ in 0..2_000 {
            let mut moved = 0.0f64;
            for i in 0..degree {
                let others = (0..degree).filter(|j| *j != i);
                let product = others.fold(leading, |p, j| p.times(roots[i].minus(roots[j])));
                let change = self.at(roots[i]).over(product);
                roots[i] = roots[i].minus(change);
                moved = moved.max(change.modulus());
            }
            if moved < 1e-14 {
                break;
            }
        }
        // Imaginary parts this small are rounding errors of the iteration.
        for root in &mut roots {
            if root.im.abs() < 1e-9 {
                root.im = 0.0;
            }
        }
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        roots.sort_by(
            |a, b| {
                if near(a.re, b.re) { b.im.total_cmp(&a.im) } else { b.re.total_cmp(&a.re) }
            },
        );
        roots
    }

    /// Whether all roots lie within a circle around 0 (Schur and Cohn's recursion).
    pub fn roots_within(&self, radius: f64) -> bool {
        let mut power = 1.0;
        let mut c: Vec<f64> = Vec::with_capacity(self.coefficients.len());
        for x in &self.coefficients {
            c.push(x * power);
            power *= radius;
        }
        while c.len() > 1 {
            let last = c.len() - 1;
            let k = c[0] / c[last];
            if !k.is_finite() || k.abs() >= 1.0 {
                return false;
            }
            c = (1..=last).map(|i| c[i] - k * c[last - i]).collect();
        }
        true
    }

    /// The largest modulus of a root, to 12 digits.
    pub fn largest_modulus(&self) -> f64 {
        let mut low = 0.0;
        let mut high = 1.0;
        while !self.roots_within(high) && high < 1e6 {
            low = high;
            high *= 2.0;
        }
        for _ in 0..44 {
            let middle = (low + high) / 2.0;
            if self.roots_within(middle) { high = middle } else { low = middle }
        }
        high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_of_a_product_are_its_factors() {
        // (z - 2)(z + 0.5)(z² - z + 1)
        let p = Polynomial::new(vec![-1.0, -0.5, 1.5, -2.5, 1.0]);
        let roots = p.roots();
        let expected = [(2.0, 0.0), (0.5, 0.75f64.sqrt()), (0.5, -0.75f64.sqrt()), (-0.5, 0.0)];
        for (root, (re, im)) in roots.iter().zip(expected) {
            assert!((root.re - re).abs() < 1e-9 && (root.im - im).abs() < 1e-9, "{roots:?}");
        }
        assert!((p.largest_modulus() - 2.0).abs() < 1e-9);
        assert!(p.roots_within(2.001) && !p.roots_within(1.999));
    }

    #[test]
    fn the_largest_modulus_is_that_of_the_roots() {
        for c in [vec![-0.368, 0.401, 1.0, -2.0, 1.0], vec![0.3, 0.1, -0.2, 0.9, 0.4, 1.0]] {
            let p = Polynomial::new(c);
            let max = p.roots().iter().map(|z| z.modulus()).fold(0.0, f64::max);
            assert!((p.largest_modulus() - max).abs() < 1e-8, "{p:?}");
        }
    }
}
